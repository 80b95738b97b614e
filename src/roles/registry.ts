import { StartError } from '../errors.ts'

/** A role as the service or a consumer declares it (contract 3, section 1). */
export type RoleSpec = {
  name: string
  description?: string
  /** The ways in which it is conferred; none: no path confers it. */
  grant_paths: readonly string[]
  /** Informative only. */
  required_credential_types?: readonly string[]
  /** Absent: every registered kind; empty: global only. */
  applicable_scope_kinds?: readonly string[]
}

export type RegistryOptions = {
  roles?: readonly RoleSpec[]
  scope_kinds?: readonly { name: string; description?: string }[]
}

/** Roles and scope kinds, built once at start; a consumer adds entries and never redefines a builtin. */
export type Registry = {
  role(name: string): RoleSpec | undefined
  /** Roles with the grant path `admin`, in the order of registration. */
  readonly grantable: readonly string[]
  isScopeKind(name: string): boolean
  isCredentialType(name: string): boolean
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
const grantPaths = ['admin', 'self_service', 'system', 'bootstrap']
const credentialTypes = ['session', 'api_token', 'daemon_token']

/** Contract 3, section 0: a Name. */
const nameForm = /^[a-z]([a-z_]*[a-z])?$/
const nameMax = 64

export function createRegistry({ roles = [], scope_kinds = [] }: RegistryOptions): Registry {
  const kinds = new Set<string>()
  for (const { name } of scope_kinds) {
    checkName('scope kind', name, kinds.has(name))
    kinds.add(name)
  }
  const byName = new Map(builtinRoles.map((role) => [role.name, role]))
  for (const role of roles) {
    checkName('role', role.name, byName.has(role.name))
    checkListed(role, 'grant_paths', role.grant_paths, grantPaths)
    checkListed(role, 'required_credential_types', role.required_credential_types ?? [], credentialTypes)
    checkListed(role, 'applicable_scope_kinds', role.applicable_scope_kinds ?? [], [...kinds])
    byName.set(role.name, role)
  }
  return {
    role: (name) => byName.get(name),
    grantable: [...byName.values()]
      .filter((role) => role.grant_paths.includes('admin'))
      .map(({ name }) => name),
    isScopeKind: (name) => kinds.has(name),
    isCredentialType: (name) => credentialTypes.includes(name),
  }
}

function checkName(what: string, name: string, isTaken: boolean): void {
  const refuse = (rule: string): never => {
    throw new StartError('invalid_registry', `The ${what} "${name}" ${rule}`, 78)
  }
  if (typeof name !== 'string' || name.length > nameMax || !nameForm.test(name))
    refuse(`must be 1 to ${nameMax} characters of a-z and _, beginning and ending with a letter.`)
  if (isTaken) refuse('is registered already; choose another name.')
}

function checkListed(
  role: RoleSpec,
  key: string,
  listed: readonly string[],
  registered: readonly string[],
): void {
  const unknown = listed.find((name) => !registered.includes(name))
  if (unknown !== undefined)
    throw new StartError(
      'invalid_registry',
      `The role "${role.name}" names "${unknown}" in ${key}, which is not registered.`,
      78,
    )
}
