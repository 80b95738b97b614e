import type { AuthorizeOffer } from '../registry/hooks.ts'
import type { RegistryOptions } from '../registry/registry.ts'
import { isPlainObject } from '../wire/plain-object.ts'

/**
 * What environment variables cannot express: registries, hooks and methods, from a config file or the library
 * options. Their content is checked where it is used.
 */
export type DeclarationOptions = {
  readonly [K in keyof typeof containers]?: (typeof containers)[K]['value']
}

type Container<T> = { rule: string; fits(value: unknown): boolean; value?: T }
type Registered<K extends keyof RegistryOptions> = Container<NonNullable<RegistryOptions[K]>>

const list = { rule: 'a list', fits: Array.isArray }
const record = { rule: 'an object', fits: isPlainObject }
const names: Container<readonly string[]> = list
const table: Container<Readonly<Record<string, unknown>>> = record
const roles: Registered<'roles'> = list
const named: Registered<'scope_kinds'> = list
const audit_events: Registered<'audit_events'> = record
const authorize_offer: Container<AuthorizeOffer> = {
  rule: 'a function',
  fits: (value) => typeof value === 'function',
}

const containers = {
  roles,
  scope_kinds: named,
  grant_paths: named,
  credential_types: named,
  audit_events,
  hooks: table,
  actions: table,
  authorize_offer,
  self_service_roles: names,
}

/** Separates the declarations from the settings; `label` names a key in a problem. */
export function readDeclarations(options: Readonly<Record<string, unknown>>, label: (key: string) => string) {
  const declarations: Record<string, unknown> = {}
  const problems: string[] = []
  const rest: Record<string, unknown> = Object.create(null)
  for (const [key, value] of Object.entries(options)) {
    if (!Object.hasOwn(containers, key)) rest[key] = value
    else if (value !== undefined) {
      const { rule, fits } = containers[key as keyof typeof containers]
      if (fits(value)) declarations[key] = value
      else problems.push(`${label(key)} must be ${rule}`)
    }
  }
  return { declarations: declarations as DeclarationOptions, problems, rest }
}
