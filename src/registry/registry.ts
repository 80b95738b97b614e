import type { z } from 'zod'
import { StartError } from '../errors.ts'
import { checkEntry, checkName, type NamedEntry, namedRegistry, type Refuse, refuseEntry } from './entries.ts'
import { createEventTypes, type EventTypes } from './event-types.ts'

/** A role as the service or a consumer declares it. */
export type RoleSpec = {
  name: string
  description?: string
  /** The ways in which it can be granted; empty: none. */
  grant_paths: readonly string[]
  /** Informative only. */
  required_credential_types?: readonly string[]
  /** Absent: every registered kind; empty: global only. */
  applicable_scope_kinds?: readonly string[]
}

export type RegistryOptions = {
  roles?: readonly RoleSpec[]
  scope_kinds?: readonly NamedEntry[]
  grant_paths?: readonly NamedEntry[]
  credential_types?: readonly NamedEntry[]
  /** Type → the schema of its metadata, or null for none. */
  audit_events?: Readonly<Record<string, z.ZodType | null>>
  /** The roles that any actor may take and give up; if set, `self_service_role_set` exists. */
  self_service_roles?: readonly string[]
}

/** What a consumer may extend, built once at start; builtins cannot be redefined. */
export type Registry = {
  role(name: string): RoleSpec | undefined
  /** Roles with the grant path `admin`, in the order of registration. */
  readonly grantable: readonly string[]
  isScopeKind(name: string): boolean
  isCredentialType(name: string): boolean
  /** Undefined: the option was not given. */
  readonly selfService: ReadonlySet<string> | undefined
  readonly events: EventTypes
}

const builtinRoles: readonly RoleSpec[] = [
  {
    name: 'keeper',
    grant_paths: ['bootstrap'],
    required_credential_types: ['daemon_token'],
    applicable_scope_kinds: [],
  },
  { name: 'admin', grant_paths: ['admin', 'bootstrap'], applicable_scope_kinds: [] },
]
const builtinPaths = ['admin', 'self_service', 'system', 'bootstrap']
const builtinCredentialTypes = ['session', 'api_token', 'daemon_token']

export function createRegistry(options: RegistryOptions): Registry {
  const scopeKinds = namedRegistry('scope kind', [], options.scope_kinds ?? [])
  const credentialTypes = namedRegistry(
    'credential type',
    builtinCredentialTypes,
    options.credential_types ?? [],
  )
  const roles = createRoles(options.roles ?? [], {
    grant_paths: namedRegistry('grant path', builtinPaths, options.grant_paths ?? []),
    required_credential_types: credentialTypes,
    applicable_scope_kinds: scopeKinds,
  })
  return {
    role: (name) => roles.get(name),
    grantable: [...roles.values()]
      .filter((role) => role.grant_paths.includes('admin'))
      .map(({ name }) => name),
    isScopeKind: (name) => scopeKinds.has(name),
    isCredentialType: (name) => credentialTypes.has(name),
    selfService: options.self_service_roles && selfServiceOf(options.self_service_roles, roles),
    events: createEventTypes(options.audit_events ?? {}),
  }
}

/** The list properties of a role, and the names that each may contain. */
type Listable = Record<
  'grant_paths' | 'required_credential_types' | 'applicable_scope_kinds',
  ReadonlySet<string>
>

function createRoles(own: readonly RoleSpec[], listable: Listable): ReadonlyMap<string, RoleSpec> {
  const lists = Object.keys(listable) as (keyof Listable)[]
  const builtin = new Map(builtinRoles.map((role) => [role.name, role]))
  const roles = new Map(builtin)
  for (const role of own) {
    checkEntry('role', role, ['name', 'description', ...lists])
    checkName('role', role.name, { builtin: (it) => builtin.has(it), own: (it) => roles.has(it) })
    for (const key of lists)
      if (key === 'grant_paths' || role[key] !== undefined) checkListed(role, key, listable[key])
    roles.set(role.name, role)
  }
  return roles
}

function checkListed(role: RoleSpec, key: keyof Listable, registered: ReadonlySet<string>): void {
  const refuse: Refuse = refuseEntry('role', role.name)
  const listed: readonly unknown[] = Array.isArray(role[key])
    ? role[key]
    : refuse(`must have ${key} as a list.`)
  const unknown = listed.findIndex((name) => !registered.has(name as string))
  if (unknown >= 0) refuse(`names "${listed[unknown]}" in ${key}, which is not registered.`)
}

/** Refuses a role without the grant path `self_service`: it would look eligible, but taking it would fail. */
function selfServiceOf(named: readonly string[], roles: ReadonlyMap<string, RoleSpec>): ReadonlySet<string> {
  const bad = named.find((name) => !roles.get(name)?.grant_paths.includes('self_service'))
  if (bad !== undefined)
    throw new StartError(
      'invalid_registry',
      `self_service_roles: "${bad}" is not a registered role with the grant path self_service.`,
      78,
    )
  return new Set(named)
}
