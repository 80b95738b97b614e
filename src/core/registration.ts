import { z } from 'zod'
import type { Config } from '../config/config.ts'
import { StartError } from '../errors.ts'
import type { Registry } from '../registry/registry.ts'
import { badText } from '../wire/issues.ts'
import { Uuid } from '../wire/types.ts'
import type { Action, AuthSpec, WiredAction } from './method.ts'

const scopeForm = /^[a-z][a-z_]*:[a-z][a-z0-9_.]*$/

/**
 * Checks every declaration and adds what follows from its place in the table. A broken rule stops the start with
 * an error that names the method and the rule. A declaration without a handler is left out, so callers cannot tell
 * it from an unknown method. No compiler has checked the declarations of a config file, and a misspelled guard
 * there must not become no guard. Methods that the configuration switches off are checked too. Only the names in
 * `reserved` may begin with `rpc.`.
 */
export function wireActions(
  table: Record<string, Action>,
  registry: Registry,
  config: Config,
  reserved: readonly string[] = [],
): Map<string, WiredAction> {
  const wired = new Map<string, WiredAction>()
  for (const [method, action] of Object.entries(table)) {
    const refuse = (rule: string): never => {
      throw new StartError('invalid_action', `Action ${method}: ${rule}`, 78)
    }
    if (badText(method)) refuse('no caller can send a name with U+0000 or half a letter; rename it.')
    if (method.startsWith('rpc.') && !reserved.includes(method))
      refuse('method names starting with "rpc." are reserved; rename it.')
    if (typeof action !== 'object' || action === null) refuse('declare it with query() or mutation().')
    if (action.handler === undefined) continue
    checkKind(action, refuse)
    if (action.event !== undefined && !registry.events.has(action.event))
      refuse(`the audit event "${action.event}" is not registered; add it to audit_events.`)
    checkAuth(action.auth, registry, refuse)
    const declaresActing = action.input instanceof z.ZodObject && 'acting' in action.input.shape
    if (declaresActing) refuse('`acting` is added where auth.actor is not none; do not declare it.')
    if (!(action.input instanceof z.ZodObject) || !(action.input.def.catchall instanceof z.ZodNever))
      refuse('the input must be a strict object (z.strictObject).')
    if (action.rate_limit !== undefined && !rateLimits.includes(action.rate_limit))
      refuse(`rate_limit must be one of ${rateLimits.join(', ')}.`)
    if (action.rate_limit && action.rate_limit !== 'ip' && action.auth.account !== 'required')
      refuse(`rate_limit "${action.rate_limit}" needs auth.account "required".`)
    if (action.budget && action.auth.account !== 'required') refuse('a budget needs auth.account "required".')
    if (action.rate_limit_group && !action.rate_limit) refuse('rate_limit_group needs rate_limit.')
    if (action.enabled && !action.enabled(config, registry)) continue
    wired.set(method, {
      ...action,
      method,
      scope: action.auth.required_scope ?? `rpc:${method}`,
      params:
        action.auth.actor === 'none'
          ? action.input
          : (action.input as z.ZodObject).extend({ acting: Uuid.optional() }),
    })
  }
  return wired
}

function checkKind({ side_effects, event, handler }: Action, refuse: (rule: string) => never): void {
  if (typeof handler !== 'function') refuse('the handler must be a function.')
  if (typeof side_effects !== 'boolean') refuse('side_effects must be true or false.')
  if (side_effects && typeof event !== 'string')
    refuse('a method with side effects needs the audit event of its transaction; declare it with mutation().')
  if (!side_effects && event !== undefined)
    refuse('a method without side effects has no audit event; declare it with query().')
}

const axes = ['none', 'optional', 'required']
const rateLimits = ['ip', 'account', 'both']
const authKeys = ['account', 'actor', 'roles', 'credential_types', 'required_scope']

function checkAuth(auth: AuthSpec, registry: Registry, refuse: (rule: string) => never): void {
  if (typeof auth !== 'object' || auth === null) refuse('auth must say account and actor.')
  const unknown = Object.keys(auth).find((key) => !authKeys.includes(key))
  if (unknown !== undefined) refuse(`auth.${unknown} is unknown; auth has ${authKeys.join(', ')}.`)
  const { account, actor, roles, credential_types, required_scope } = auth
  for (const [name, axis] of Object.entries({ account, actor }))
    if (!axes.includes(axis)) refuse(`auth.${name} must be one of ${axes.join(', ')}.`)
  for (const [name, list] of Object.entries({ roles, credential_types }))
    if (list !== undefined && !Array.isArray(list)) refuse(`auth.${name} must be a list.`)
  if (roles && actor !== 'required') refuse('roles need auth.actor "required".')
  if (roles && roles.length === 0) refuse('roles may not be empty; leave the key out.')
  for (const role of roles ?? []) if (!registry.role(role)) refuse(`role "${role}" is not registered.`)
  if (credential_types && credential_types.length === 0)
    refuse('credential_types may not be empty; leave the key out.')
  for (const type of credential_types ?? [])
    if (!registry.isCredentialType(type)) refuse(`credential type "${type}" is not registered.`)
  if (account === 'none' && actor !== 'none') refuse('an actor axis needs an account axis.')
  if (actor === 'required' && account !== 'required')
    refuse('auth.actor "required" needs auth.account "required".')
  if (account === 'none' && (roles || credential_types || required_scope !== undefined))
    refuse('a public method has no roles, credential_types or required_scope.')
  if (required_scope !== undefined && !isOwnScope(required_scope))
    refuse(
      `required_scope "${required_scope}" must look like "area:name" and not begin with rpc: or surface:.`,
    )
}

const isOwnScope = (scope: string): boolean =>
  typeof scope === 'string' &&
  scopeForm.test(scope) &&
  !scope.startsWith('rpc:') &&
  !scope.startsWith('surface:')
