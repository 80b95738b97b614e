import type { App } from '../core/app.ts'
import { takesKey } from '../core/idempotency.ts'
import type { AuthSpec, WiredMethod } from '../core/method.ts'
import type { Reason } from '../reasons.ts'
import type { JsonSchema } from '../wire/type-text.ts'
import { Schemas } from './json-schema.ts'

/** What a client has to know of a method. */
export type MethodDescription = {
  name: string
  summary: string
  description: string
  auth: AuthSpec
  /** False: also reached by GET, and by tokens of scope `read_only`. */
  side_effects: boolean
  /** Whether a call may have an idempotency key, and what a repetition is answered. */
  idempotency: 'same_reply' | 'completed_at' | null
  rate_limit: LimiterDescription | null
  /** Every reason that a call may be refused with, once its envelope is valid. */
  reasons: readonly string[]
  input: JsonSchema
  output: JsonSchema
}

/** Which limiter counts the calls, and by what; the operator decides how many it admits. */
export type LimiterDescription = {
  axis: 'ip' | 'account' | 'both'
  limiter: string
  /** True: callers with a credential are not counted. */
  anonymous_only?: true
  /** A second limiter, charged by the work done. */
  budget?: string
}

/** Every method that this service answers, by name. The shapes that they refer to are collected in `schemas`. */
export function describeMethods(
  { actions }: Pick<App, 'actions'>,
  schemas: Schemas = new Schemas('draft-7'),
): MethodDescription[] {
  return [...actions.values()]
    .sort((a, b) => (a.method < b.method ? -1 : 1))
    .map((action) => describeMethod(action, schemas))
}

function describeMethod(action: WiredMethod, schemas: Schemas): MethodDescription {
  const { method, description, auth, side_effects, scope, secret_reply } = action
  return {
    name: method,
    summary: summaryOf(description),
    description,
    auth: auth.account === 'none' ? auth : { ...auth, required_scope: scope },
    side_effects,
    idempotency: takesKey(action) ? (secret_reply ? 'completed_at' : 'same_reply') : null,
    rate_limit: limiterOf(action),
    reasons: reasonsOf(action),
    ...convert(action, schemas),
  }
}

function convert({ method, params, output }: WiredMethod, schemas: Schemas) {
  try {
    return { input: schemas.resolve(schemas.of(params, 'input')), output: schemas.of(output, 'output') }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`The schemas of ${method} cannot be described: ${why}`, { cause })
  }
}

/** The first sentence. */
export const summaryOf = (description: string): string =>
  /^.*?[.](?=\s|$)/s.exec(description)?.[0] ?? description

function limiterOf({
  method,
  rate_limit,
  rate_limit_group,
  budget,
  auth,
}: WiredMethod): LimiterDescription | null {
  if (!rate_limit) return null
  return {
    axis: rate_limit,
    limiter: rate_limit_group ?? method,
    ...(rate_limit === 'ip' && auth.account === 'optional' && { anonymous_only: true }),
    ...(budget && { budget }),
  }
}

/** What the guards, the input, the limiters and the database may answer, then the method's own reasons. */
export function reasonsOf({
  auth,
  side_effects,
  rate_limit,
  error_reasons,
  before_enrolment,
}: Pick<
  WiredMethod,
  'auth' | 'side_effects' | 'rate_limit' | 'error_reasons' | 'before_enrolment'
>): Reason[] {
  const { account, actor, roles, credential_types, fresh } = auth
  const isKeyed = takesKey({ auth, side_effects })
  const guards: (Reason | false | undefined)[] = [
    account === 'required' && 'authentication_required',
    credential_types && 'credential_type_required',
    account !== 'none' && 'token_scope_required',
    account !== 'none' && !before_enrolment && 'second_factor_enrolment_required',
    fresh && 'fresh_authentication_required',
    account !== 'none' && 'account_vanished',
    actor !== 'none' && 'actor_required',
    actor !== 'none' && 'actor_not_on_account',
    actor !== 'none' && 'no_actors_on_account',
    roles && 'insufficient_permissions',
    'invalid_params',
    (rate_limit || isKeyed) && 'rate_limited',
    ...(isKeyed ? (['idempotency_key_reused', 'idempotency_replayed'] as const) : []),
    'busy',
    side_effects && 'storage_full',
    'service_unavailable',
    'timeout',
    'internal_error',
  ]
  return [...new Set([...guards.filter((reason) => !!reason), ...error_reasons])] as Reason[]
}
