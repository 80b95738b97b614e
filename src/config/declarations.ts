import type { Method } from '../core/method.ts'
import type { AuthorizeOffer, CellHooks } from '../registry/hooks.ts'
import type { Deliver } from '../registry/messages.ts'
import type { RegistryOptions } from '../registry/registry.ts'
import { meant } from '../wire/closest.ts'
import { isPlainObject } from '../wire/input.ts'
import type { OidcProviderOptions } from './oidc.ts'

/** What environment variables cannot express, from a config file or the library options. */
export type DeclarationOptions = RegistryOptions & {
  readonly hooks?: CellHooks | undefined
  /** Methods by their name on the wire, from `query()` and `mutation()`. */
  readonly actions?: Readonly<Record<string, Method>> | undefined
  /** Who may offer a role. */
  readonly authorize_offer?: AuthorizeOffer | undefined
  /** Delivers messages to people, in place of SMTP. */
  readonly deliver?: Deliver | undefined
  /** The providers that people may sign in with. */
  readonly oidc?: readonly OidcProviderOptions[] | undefined
}

type Container = { rule: string; fits(value: unknown): boolean }
const list: Container = { rule: 'a list', fits: Array.isArray }
const table: Container = { rule: 'an object', fits: isPlainObject }
const callback: Container = { rule: 'a function', fits: (value) => typeof value === 'function' }

/** The containers; what is in them is checked where it is used, hooks here. */
const containers: Record<keyof DeclarationOptions, Container> = {
  roles: list,
  scope_kinds: list,
  grant_paths: list,
  credential_types: list,
  audit_events: table,
  hooks: table,
  actions: table,
  authorize_offer: callback,
  deliver: callback,
  oidc: list,
  self_service_roles: list,
  reasons: table,
  notifications: table,
}

export const declarationNames = Object.keys(containers)

const hooks: Record<keyof CellHooks, Container> = { authorizeCreate: callback, validateData: callback }

/** Separates the declarations from the settings; `label` names a key in a problem. */
export function readDeclarations(options: Readonly<Record<string, unknown>>, label: (key: string) => string) {
  const declarations: Record<string, unknown> = {}
  const problems: string[] = []
  const rest: Record<string, unknown> = Object.create(null)
  for (const [key, value] of Object.entries(options)) {
    if (!Object.hasOwn(containers, key)) rest[key] = value
    else if (value !== undefined) {
      const { rule, fits } = containers[key as keyof typeof containers]
      // What reads it next relies on its form.
      if (fits(value)) declarations[key] = value
      else problems.push(`${label(key)} must be ${rule}`)
      if (key === 'hooks' && key in declarations) problems.push(...brokenHooks(value as object, label))
    }
  }
  return { declarations: declarations as DeclarationOptions, problems, rest }
}

/** A misspelled hook would guard nothing. */
const brokenHooks = (given: object, label: (key: string) => string): string[] =>
  Object.entries(given).flatMap(([name, value]) => {
    const names = Object.keys(hooks)
    if (!Object.hasOwn(hooks, name))
      return [`${label(`hooks.${name}`)} is not a hook${meant(name, names)} (hooks: ${names.join(', ')})`]
    const { rule, fits } = hooks[name as keyof typeof hooks]
    return value === undefined || fits(value) ? [] : [`${label(`hooks.${name}`)} must be ${rule}`]
  })
