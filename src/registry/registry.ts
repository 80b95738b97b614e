import type { z } from 'zod'
import type { OidcProvider } from '../config/oidc.ts'
import { StartError } from '../errors.ts'
import { catalogue } from '../reasons.ts'
import { meant } from '../wire/closest.ts'
import type { ReasonSpec } from '../wire/consumer.ts'
import { isPlainObject } from '../wire/input.ts'
import {
  checkEntry,
  checkKeys,
  checkName,
  type NamedEntry,
  namedRegistry,
  type Refuse,
  refuseEntry,
} from './entries.ts'
import {
  createEventTypes,
  createNotificationTypes,
  type EventTypes,
  type NotificationTypes,
} from './event-types.ts'

/** A role as the service or a consumer declares it. */
export type RoleSpec = {
  readonly name: string
  readonly description?: string | undefined
  /** The ways in which it can be granted; empty: none. */
  readonly grant_paths: readonly string[]
  /** Informative only. */
  readonly required_credential_types?: readonly string[] | undefined
  /** Absent: every registered kind; empty: global only. */
  readonly applicable_scope_kinds?: readonly string[] | undefined
}

export type RegistryOptions = {
  readonly roles?: readonly RoleSpec[] | undefined
  readonly scope_kinds?: readonly NamedEntry[] | undefined
  readonly grant_paths?: readonly NamedEntry[] | undefined
  readonly credential_types?: readonly NamedEntry[] | undefined
  /** Type → the schema of its metadata, or null for none. */
  readonly audit_events?: Readonly<Record<string, z.ZodType | null>> | undefined
  /** The roles that any actor may take and give up; if set, `self_service_role_set` exists. */
  readonly self_service_roles?: readonly string[] | undefined
  /** Reasons that methods may refuse with, besides those of the service. */
  readonly reasons?: Readonly<Record<string, ReasonSpec>> | undefined
  /** Notification → the schema of its params. */
  readonly notifications?: Readonly<Record<string, z.ZodType>> | undefined
}

/** What a consumer may extend, built once at start; builtins cannot be redefined. */
export type Registry = {
  role(name: string): RoleSpec | undefined
  readonly roleNames: readonly string[]
  /** Roles with the grant path `admin`, in the order of registration. */
  readonly grantable: readonly string[]
  readonly scopeKinds: readonly NamedEntry[]
  isScopeKind(name: string): boolean
  /** The kinds of scope in which a role can be held. */
  scopeKindsOf(role: RoleSpec): readonly string[]
  isCredentialType(name: string): boolean
  /** Undefined: the option was not given. */
  readonly selfService: ReadonlySet<string> | undefined
  readonly events: EventTypes
  readonly notifications: NotificationTypes
  /** The providers that people may sign in with, by id. */
  readonly providers: ReadonlyMap<string, OidcProvider>
  /** The consumer's own reasons. */
  readonly reasons: ReadonlyMap<string, ReasonSpec>
}

export const builtinRoles: readonly RoleSpec[] = [
  {
    name: 'keeper',
    description: 'Runs the service: removes accounts for good, with the daemon token.',
    grant_paths: ['bootstrap'],
    required_credential_types: ['daemon_token'],
    applicable_scope_kinds: [],
  },
  {
    name: 'admin',
    description: 'Manages accounts, roles, invites and settings, and sees and edits every cell.',
    grant_paths: ['admin', 'bootstrap'],
    applicable_scope_kinds: [],
  },
]
const builtinPaths = ['admin', 'self_service', 'system', 'bootstrap']
const builtinCredentialTypes = ['session', 'api_token', 'daemon_token']

export function createRegistry(
  options: RegistryOptions & { readonly oidc?: readonly OidcProvider[] },
): Registry {
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
    roleNames: [...roles.keys()],
    grantable: [...roles.values()]
      .filter((role) => role.grant_paths.includes('admin'))
      .map(({ name }) => name),
    scopeKinds: options.scope_kinds ?? [],
    isScopeKind: (name) => scopeKinds.has(name),
    scopeKindsOf: (role) => role.applicable_scope_kinds ?? [...scopeKinds],
    isCredentialType: (name) => credentialTypes.has(name),
    selfService: options.self_service_roles && selfServiceOf(options.self_service_roles, roles),
    events: createEventTypes(options.audit_events ?? {}),
    notifications: createNotificationTypes(options.notifications ?? {}),
    providers: new Map(options.oidc?.map((provider) => [provider.id, provider])),
    reasons: createReasons(options.reasons ?? {}),
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
    : refuse(`must have a list as ${key}.`)
  const unknown = listed.findIndex((name) => !registered.has(name as string))
  if (unknown >= 0)
    refuse(
      `names "${listed[unknown]}" in ${key}, which is not registered${meant(listed[unknown], registered, '.')}`,
    )
}

/** Refuses a role without the grant path `self_service`: it would look eligible, but taking it would fail. */
function selfServiceOf(named: readonly string[], roles: ReadonlyMap<string, RoleSpec>): ReadonlySet<string> {
  const eligible = [...roles.values()].filter(({ grant_paths }) => grant_paths.includes('self_service'))
  const names = new Set(eligible.map(({ name }) => name))
  const bad = named.findIndex((name) => !names.has(name))
  if (bad >= 0)
    throw new StartError(
      'invalid_registry',
      `self_service_roles: "${named[bad]}" is not a registered role with the grant path self_service${meant(named[bad], names, '.')}`,
      78,
    )
  return new Set(named)
}

/** Reasons that the client itself makes; from the service the same name would be ambiguous. */
const clientReasons = ['transport_failed', 'connection_lost', 'not_connected']
const isTaken = (reason: string): boolean =>
  Object.hasOwn(catalogue, reason) || clientReasons.includes(reason)

function createReasons(own: Readonly<Record<string, unknown>>): ReadonlyMap<string, ReasonSpec> {
  for (const [reason, spec] of Object.entries(own)) {
    checkName('reason', reason, { builtin: isTaken, own: () => false })
    const refuse: Refuse = refuseEntry('reason', reason)
    if (!isPlainObject(spec)) refuse('must be an object with status and message.')
    else checkKeys(refuse, spec, ['status', 'message'])
    const { status, message } = spec as ReasonSpec
    if (!Number.isInteger(status) || status < 400 || status > 599)
      refuse('must have an HTTP status from 400 to 599 as status.')
    if (typeof message !== 'string' || message === '' || message.length > messageMax)
      refuse(`must have a text of 1 to ${messageMax} characters as message.`)
  }
  return new Map(Object.entries(own as Record<string, ReasonSpec>))
}

const messageMax = 500
