import { z } from 'zod'
import type { Config } from '../config/config.ts'
import type { ReadOnly } from '../db/db.ts'
import type { Reason } from '../errors.ts'
import type { EventType } from '../events.ts'
import type { Registry } from '../registry/registry.ts'
import type { App } from './app.ts'
import type { Fail, Work } from './mutate.ts'

/**
 * Declarations of RPC methods (contract 1, section 6). Dispatch, guards, transactions, limits, docs, the
 * typed client and the test sweeps all derive from what `query` and `mutation` return.
 */

export type Axis = 'none' | 'optional' | 'required'
export type CredentialType = 'session' | 'api_token' | 'daemon_token'
export type RateLimit = 'ip' | 'account' | 'both'

export type AuthSpec = {
  readonly account: Axis
  readonly actor: Axis
  /** Any of these, held by the acting actor as an active global grant. */
  readonly roles?: readonly string[]
  readonly credential_types?: readonly string[]
  /** Left out: `rpc:<method>`. */
  readonly required_scope?: string
}

/** `{ role: 'admin' }` says: account and actor required, and that role. */
export type AuthDeclaration = AuthSpec | { readonly role: string }

type AuthOf<D extends AuthDeclaration> = D extends { role: infer R extends string }
  ? { account: 'required'; actor: 'required'; roles: readonly [R] }
  : Extract<D, AuthSpec>

export type Account = {
  id: string
  username: string
  email: string | null
  email_verified: boolean
  created_at: string
}
export type Actor = { id: string; name: string }
export type RoleGrant = {
  id: string
  actor_id: string
  role: string
  scope_kind: string | null
  scope_id: string | null
  created_at: string
  expires_at: string | null
  granted_by: string | null
}
export type TokenScope = { kind: 'full' } | { kind: 'read_only' } | { kind: 'methods'; methods: string[] }
export type Credential = {
  type: CredentialType
  id: string | null
  scope: TokenScope
  expires_at: string | null
}

type Present<X extends Axis, T> = X extends 'required' ? T : X extends 'optional' ? T | null : null

/** Who calls, as far as the axes of the declaration resolve it. */
export type CallerOf<A extends AuthSpec> = {
  account: Present<A['account'], Account>
  credential: Present<A['account'], Credential>
  actor: Present<A['actor'], Actor>
  /** Active grants of the acting actor; empty without one. */
  role_grants: readonly RoleGrant[]
}

type Common<A extends AuthSpec, E extends Reason> = CallerOf<A> & {
  app: App
  ip: string
  request_id: string
  fail: Fail<E>
}
export type QueryContext<A extends AuthSpec, E extends Reason> = Common<A, E> & {
  db: ReadOnly
}
export type MutationContext<A extends AuthSpec, E extends Reason> = Common<A, E> & Work

export type Action<
  A extends AuthSpec = AuthSpec,
  I extends z.ZodType = z.ZodType,
  O extends z.ZodType = z.ZodType,
  E extends Reason = Reason,
> = {
  readonly kind: 'request_response'
  readonly initiator: 'frontend'
  readonly async: true
  readonly auth: A
  readonly side_effects: boolean
  readonly input: I
  readonly output: O
  readonly description: string
  readonly rate_limit?: RateLimit
  readonly rate_limit_group?: string
  /** An account's limiter that the handler charges by what it has done: refused while nothing is left. */
  readonly budget?: string
  readonly error_reasons: readonly E[]
  /** The audit event of a mutation, also of its rolled-back attempts. */
  readonly event?: EventType
  /** True: all statements of a mutation see one state of the database (contract 1, section 10, rule 1). */
  readonly snapshot?: boolean
  /** False: the method is not wired and answers like an unknown name (contract 1, section 6). */
  readonly enabled?: (config: Config, registry: Registry) => boolean
  /** Rules across fields and cursors: judged with the schema, before the limiter, on the input alone. */
  readonly refine?: (input: never, context: never) => unknown
  readonly handler: (input: never, context: never) => Promise<unknown>
}

type Declaration<
  D extends AuthDeclaration,
  I extends z.ZodType,
  O extends z.ZodType,
  E extends Reason,
  R,
  C,
> = {
  doc: string
  auth: D
  input?: I
  output: O
  errors?: readonly E[]
  rate_limit?: RateLimit
  rate_limit_group?: string
  enabled?(config: Config, registry: Registry): boolean
  refine?(input: z.output<I>, context: CallerOf<AuthOf<D>> & { app: App; fail: Fail<E> }): R
  handler(input: R, context: C): Promise<z.input<O>>
}

type NoInput = z.ZodObject<Record<never, never>, z.core.$strict>

/** A method without side effects: no transaction, no `audit`, also reachable by GET. */
export function query<
  const D extends AuthDeclaration,
  O extends z.ZodType,
  I extends z.ZodType = NoInput,
  const E extends Reason = never,
  R = z.output<I>,
>(spec: Declaration<D, I, O, E, R, QueryContext<AuthOf<D>, E>>): Action<AuthOf<D>, I, O, E> {
  return declare(spec, false)
}

/** A method with side effects: its handler runs inside one transaction, with its audit rows. */
export function mutation<
  const D extends AuthDeclaration,
  O extends z.ZodType,
  I extends z.ZodType = NoInput,
  const E extends Reason = never,
  R = z.output<I>,
>(
  spec: Declaration<D, I, O, E, R, MutationContext<AuthOf<D>, E>> & {
    event: EventType
    snapshot?: true
    budget?: string
  },
): Action<AuthOf<D>, I, O, E> {
  const { event, snapshot, budget } = spec
  return { ...declare(spec, true), event, ...(snapshot && { snapshot }), ...(budget && { budget }) }
}

function declare<D extends AuthDeclaration, I extends z.ZodType, O extends z.ZodType, E extends Reason, R, C>(
  spec: Declaration<D, I, O, E, R, C>,
  side_effects: boolean,
): Action<AuthOf<D>, I, O, E> {
  const { auth } = spec

  return {
    kind: 'request_response',
    initiator: 'frontend',
    async: true,
    auth: 'role' in auth ? { account: 'required', actor: 'required', roles: [auth.role] } : auth,
    side_effects,
    input: (spec.input ?? z.strictObject({})) as I,
    output: spec.output,
    description: spec.doc,
    error_reasons: spec.errors ?? [],
    ...(spec.rate_limit && { rate_limit: spec.rate_limit }),
    ...(spec.rate_limit_group && { rate_limit_group: spec.rate_limit_group }),
    ...(spec.enabled && { enabled: spec.enabled }),
    ...(spec.refine && { refine: spec.refine as Action['refine'] }),
    handler: spec.handler as Action['handler'],
  } as unknown as Action<AuthOf<D>, I, O, E>
}

/** What a client may send: the declared input, and `acting` where an actor is resolved. */
export type InputOf<X extends Action> = z.input<X['input']> &
  (X['auth']['actor'] extends 'none' ? unknown : { acting?: string })
export type OutputOf<X extends Action> = z.output<X['output']>
export type ReasonOf<X extends Action> = X extends Action<AuthSpec, z.ZodType, z.ZodType, infer E> ? E : never
