import { z } from 'zod'
import type { Config } from '../config/config.ts'
import { StartError } from '../errors.ts'
import { catalogue, type Reason } from '../reasons.ts'
import { checkKeys as checkEntryKeys } from '../registry/entries.ts'
import type { Registry, RoleSpec } from '../registry/registry.ts'
import { meant } from '../wire/closest.ts'
import { isPlainObject } from '../wire/input.ts'
import { badText } from '../wire/issues.ts'
import { Uuid } from '../wire/types.ts'
import { roleName } from './guards.ts'
import type { AuthSpec, Method, ScopedRole, WiredMethod } from './method.ts'

const scopeForm = /^[a-z][a-z_]*:[a-z][a-z0-9_.]*$/

/**
 * Checks every declaration and adds what follows from its place in the table. A broken rule stops the start with an
 * error that names the method and the rule. A declaration without a handler is left out, so callers cannot tell it from
 * an unknown method. Declarations in a config file are not type-checked, and a misspelled guard must not leave the
 * method unguarded. Methods that the configuration switches off are checked too. Only the names in `reserved` may begin
 * with `rpc.`.
 */
export function wireMethods(
  table: Readonly<Record<string, Method>>,
  registry: Registry,
  config: Config,
  reserved: readonly string[] = [],
): Map<string, WiredMethod> {
  const wired = new Map<string, WiredMethod>()
  const reasons = [...Object.keys(catalogue), ...registry.reasons.keys()]
  for (const [method, action] of Object.entries(table)) {
    const refuse = (rule: string): never => {
      throw new StartError('invalid_action', `Action ${method}: ${rule}`, 78)
    }
    if (badText(method)) refuse('no caller can send a name with U+0000 or a lone surrogate; rename it.')
    if (method.startsWith('rpc.') && !reserved.includes(method))
      refuse('method names starting with "rpc." are reserved; rename it.')
    if (typeof action !== 'object' || action === null || !('kind' in action))
      refuse('declare it with query() or mutation().')
    checkKeys(action, refuse)
    if (action.handler === undefined) continue
    checkValues(action, refuse)
    checkKind(action, refuse)
    const { event, error_reasons } = action
    if (event !== undefined && !registry.events.has(event))
      refuse(
        `the audit event "${event}" is not registered${meant(event, registry.events.names, '; add it to audit_events.')}`,
      )
    for (const reason of error_reasons)
      if (!reasons.includes(reason))
        refuse(`the reason "${reason}" does not exist${meant(reason, reasons, '; declare it in reasons.')}`)
    checkAuth(action.auth, registry, refuse)
    const declaresActing = action.input instanceof z.ZodObject && 'acting' in action.input.shape
    if (declaresActing) refuse('do not declare `acting`: it is added where auth.actor is not none.')
    if (!(action.input instanceof z.ZodObject) || !(action.input.def.catchall instanceof z.ZodNever))
      refuse('the input must be a strict object (z.strictObject).')
    if (action.rate_limit !== undefined && !rateLimits.includes(action.rate_limit))
      refuse(`rate_limit must be one of ${rateLimits.join(', ')}.`)
    if (action.rate_limit && action.rate_limit !== 'ip' && action.auth.account !== 'required')
      refuse(`rate_limit "${action.rate_limit}" needs auth.account "required".`)
    if (action.budget && action.auth.account !== 'required') refuse('a budget needs auth.account "required".')
    if (action.rate_limit_group && !action.rate_limit) refuse('rate_limit_group needs rate_limit.')
    const isEnabled: unknown = action.enabled ? action.enabled(config, registry) : true
    if (typeof isEnabled !== 'boolean') refuse('enabled must return true or false.')
    if (!isEnabled) continue
    const roles = action.auth.roles?.map((asked) => withKind(asked, registry, refuse))
    wired.set(method, {
      ...action,
      auth: roles ? { ...action.auth, roles } : action.auth,
      isScoped: roles?.some((asked) => typeof asked !== 'string') === true,
      method,
      scope: action.auth.required_scope ?? `rpc:${method}`,
      params: action.auth.actor === 'none' ? action.input : withActing(action.input as z.ZodObject),
    })
  }
  return wired
}

/** Extended once per declaration, as zod compiles a schema at its first use. */
function withActing(input: z.ZodObject): z.ZodObject {
  const params = extended.get(input) ?? input.extend({ acting: Uuid.optional() })
  extended.set(input, params)
  return params
}

const extended = new WeakMap<z.ZodObject, z.ZodObject>()

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''
const isFunction = (value: unknown): boolean => typeof value === 'function'
/** Nothing awaits these, so a check in an async one would refuse nothing. */
const isSync = (value: unknown): boolean =>
  typeof value === 'function' && value.constructor.name !== 'AsyncFunction'
const isSchema = (value: unknown): boolean => value instanceof z.ZodType

/** The keys of a declaration, by the names that `query` and `mutation` have for them, and what each must be. */
const declared: Record<string, [key: keyof Method, rule: string, fits: (value: unknown) => boolean]> = {
  doc: ['description', 'a text', isText],
  auth: ['auth', 'an object that says account and actor', isPlainObject],
  input: ['input', 'a strict object (z.strictObject)', isSchema],
  output: ['output', 'a zod schema', isSchema],
  errors: ['error_reasons', 'a list', Array.isArray],
  handler: ['handler', 'a function', isFunction],
}
const optional: typeof declared = {
  rate_limit: ['rate_limit', 'a text', isText],
  rate_limit_group: ['rate_limit_group', 'a text', isText],
  refine: ['refine', 'a function that is not async', isSync],
  enabled: ['enabled', 'a function that is not async', isSync],
  event: ['event', 'a text', isText],
  snapshot: ['snapshot', 'true or false', (value) => typeof value === 'boolean'],
  repeat: ['repeat', 'true or false', (value) => typeof value === 'boolean'],
  budget: ['budget', 'a text', isText],
  before_enrolment: ['before_enrolment', 'true or false', (value) => typeof value === 'boolean'],
  replica: ['replica', 'true or false', (value) => typeof value === 'boolean'],
  json_text: ['json_text', 'true or false', (value) => typeof value === 'boolean'],
  secret_reply: ['secret_reply', 'true or false', (value) => typeof value === 'boolean'],
}
const rules = Object.entries({ ...declared, ...optional })
const names = rules.map(([name]) => name)
const keys = rules.map(([, [key]]) => key)
/** What `query` and `mutation` add. */
const added = ['kind', 'initiator', 'async', 'side_effects']

function checkKeys(action: Method, refuse: (rule: string) => never): void {
  for (const key of Object.keys(action)) {
    if (keys.includes(key as keyof Method) || added.includes(key)) continue
    if (names.includes(key))
      refuse(`"${key}" was added to the result of query() or mutation(). Pass it in their argument.`)
    refuse(`"${key}" is unknown${meant(key, names, '.')} A declaration may have ${names.join(', ')}.`)
  }
}

function checkValues(action: Method, refuse: (rule: string) => never): void {
  for (const [name, [key, rule, fits]] of rules) {
    if (action[key] === undefined && Object.hasOwn(optional, name)) continue
    if (!fits(action[key])) refuse(`${name} must be ${rule}.`)
  }
}

function checkKind({ side_effects, event, replica }: Method, refuse: (rule: string) => never): void {
  if (typeof side_effects !== 'boolean') refuse('side_effects must be true or false.')
  if (side_effects && typeof event !== 'string')
    refuse('a method with side effects needs the audit event of its transaction; declare it with mutation().')
  if (!side_effects && event !== undefined)
    refuse('a query() has no audit event; leave it out, or declare the method with mutation().')
  if (side_effects && replica)
    refuse('replica is only for a query(): a mutation reads from the primary what it changes.')
}

const axes = ['none', 'optional', 'required']
const rateLimits = ['ip', 'account', 'both']
const authKeys = ['account', 'actor', 'roles', 'credential_types', 'required_scope', 'fresh']

function checkAuth(auth: AuthSpec, registry: Registry, refuse: (rule: string) => never): void {
  const unknown = Object.keys(auth).find((key) => !authKeys.includes(key))
  if (unknown !== undefined)
    refuse(
      `auth.${unknown} is unknown${meant(unknown, authKeys, '.')} It has ${authKeys.join(', ')}, or only role.`,
    )
  const { account, actor, roles, credential_types, required_scope, fresh } = auth
  for (const [name, axis] of Object.entries({ account, actor }))
    if (!axes.includes(axis))
      refuse(`auth.${name} must be one of ${axes.join(', ')}${meant(axis, axes, '.')}`)
  for (const [name, list] of Object.entries({ roles, credential_types }))
    if (list !== undefined && !Array.isArray(list)) refuse(`auth.${name} must be a list.`)
  if (roles && actor !== 'required') refuse('auth.roles needs auth.actor "required".')
  if (roles && roles.length === 0) refuse('roles must not be empty. Leave the key out.')
  for (const asked of roles ?? []) checkRole(asked, registry, refuse)
  if (credential_types && credential_types.length === 0)
    refuse('credential_types must not be empty. Leave the key out.')
  for (const type of credential_types ?? [])
    if (!registry.isCredentialType(type))
      refuse(`credential type "${type}" is not registered; declare it in credential_types.`)
  if (fresh !== undefined && fresh !== true) refuse('auth.fresh must be true or left out.')
  if (fresh && !credential_types?.every((type) => type === 'session' || type === 'daemon_token'))
    refuse(
      'auth.fresh needs credential_types that list only session and daemon_token: API tokens are never fresh.',
    )
  if (account === 'none' && actor !== 'none') refuse('an actor axis needs an account axis.')
  if (actor === 'required' && account !== 'required')
    refuse('auth.actor "required" needs auth.account "required".')
  if (account === 'none' && (roles || credential_types || required_scope !== undefined))
    refuse('a public method must not have roles, credential_types or required_scope.')
  if (required_scope !== undefined && !isOwnScope(required_scope))
    refuse(
      `required_scope "${required_scope}" must look like "area:name" and not begin with rpc: or surface:.`,
    )
}

function checkRole(asked: string | ScopedRole, registry: Registry, refuse: (rule: string) => never): void {
  if (typeof asked !== 'string') {
    if (!isPlainObject(asked)) refuse('a role must be a name, or an object with role and in.')
    else checkEntryKeys((rule) => refuse(`a role ${rule}`), asked, ['role', 'scope_kind', 'in'])
    if (typeof asked.in !== 'function')
      refuse('`in` of a role must be a function of the input that returns the id of a scope.')
  }
  const name: unknown = roleName(asked)
  if (typeof name !== 'string' || !registry.role(name))
    refuse(`role "${name}" is not registered${meant(name, registry.roleNames, '; declare it in roles.')}`)
}

/** A scope is a kind and an id; the kind may be left out if the role applies to only one. */
function withKind(
  asked: string | ScopedRole,
  registry: Registry,
  refuse: (rule: string) => never,
): string | ScopedRole {
  if (typeof asked === 'string') return asked
  const role = registry.role(asked.role) as RoleSpec
  const kinds = registry.scopeKindsOf(role)
  const { scope_kind = kinds.length === 1 ? kinds[0] : undefined } = asked
  if (kinds.length === 0)
    refuse(`role "${role.name}" applies to no kind of scope. Require it by its name only.`)
  if (scope_kind === undefined)
    refuse(
      `role "${role.name}" applies to several kinds of scope. Set scope_kind to one of ${kinds.join(', ')}.`,
    )
  if (!kinds.includes(scope_kind as string))
    refuse(
      `role "${role.name}" does not apply to the scope_kind "${scope_kind}"${meant(scope_kind, kinds, '.')}`,
    )
  return { ...asked, scope_kind }
}

const isOwnScope = (scope: string): boolean =>
  typeof scope === 'string' &&
  scopeForm.test(scope) &&
  !scope.startsWith('rpc:') &&
  !scope.startsWith('surface:')

/** A method as `service.methods` lists it. */
export type MethodEntry = {
  name: string
  doc: string
  kind: 'query' | 'mutation'
  auth: WiredMethod['auth']
  /** The scope that a narrow token needs. */
  scope: string
  /** Zod schemas; `input` includes `acting`. `z.toJSONSchema` from zod makes JSON Schema of them. */
  input: WiredMethod['params']
  output: WiredMethod['output']
  /** The reasons that the method declares; any call may also be refused with the common ones. */
  errors: readonly Reason[]
}

export const methodsOf = ({ actions }: { actions: ReadonlyMap<string, WiredMethod> }): MethodEntry[] =>
  [...actions.values()].map((action) => ({
    name: action.method,
    doc: action.description,
    kind: action.side_effects ? 'mutation' : 'query',
    auth: action.auth,
    scope: action.scope,
    input: action.params,
    output: action.output,
    errors: action.error_reasons,
  }))
