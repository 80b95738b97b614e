import type { z } from 'zod'
import type { Config } from '../config/table.ts'
import type { EventType } from '../events.ts'
import type { Reason } from '../reasons.ts'
import type { Registry } from '../registry/registry.ts'

/**
 * The declaration of an RPC method. Dispatch, guards, transactions, limits, docs, the typed client and the test
 * sweeps all derive from it; `query` and `mutation` create one.
 */

export type Axis = 'none' | 'optional' | 'required'
export type RateLimit = 'ip' | 'account' | 'both'

/** A role required in the scope that the input names; a global grant of it counts too. */
export type ScopedRole<In = never> = {
  readonly role: string
  /** Left out: the only kind of scope that the role applies to. */
  readonly scope_kind?: string | undefined
  /** The id of the scope; null or undefined: only a global grant will do. */
  readonly in: (input: In) => string | null | undefined
}

export type AuthSpec = {
  readonly account: Axis
  readonly actor: Axis
  /** Any of these, held by the acting actor as an active grant: global, or in the scope that the input names. */
  readonly roles?: readonly (string | ScopedRole)[]
  readonly credential_types?: readonly string[]
  /** Left out: `rpc:<method>`. */
  readonly required_scope?: string
  /** True: the session must have been proven a short while ago, with the second factor if there is one. */
  readonly fresh?: true
}

export type Method<
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
  /** A limiter per account that the handler charges by the work done; calls are refused while nothing is left. */
  readonly budget?: string
  readonly error_reasons: readonly E[]
  /** The audit event of a mutation and of its rolled-back attempts. */
  readonly event?: EventType
  /** True: the handler resolves to the JSON text of its result, which is sent without being parsed. */
  readonly json_text?: boolean
  /**
   * True: a replica that has replayed everything committed before the call may answer the query's reads through `db`.
   */
  readonly replica?: boolean
  /** True: also for a caller who has yet to enrol a second factor that a role requires. */
  readonly before_enrolment?: boolean
  /** True: all statements of a mutation see one snapshot of the database. */
  readonly snapshot?: boolean
  /** False: the handler of a mutation never runs a second time, after a deadlock or the loss of the primary. */
  readonly repeat?: boolean
  /** True: the result holds a secret, so it is not kept for repetitions under an idempotency key. */
  readonly secret_reply?: boolean
  /** False: the method is not wired, and calls get `method_not_found`. */
  readonly enabled?: (config: Config, registry: Registry) => boolean
  /** Checks across fields, and cursors. Runs with the schema, before the limiters, and sees the input alone. */
  readonly refine?: (input: never, context: never) => unknown
  readonly handler: (input: never, context: never) => Promise<unknown>
}

/** A declaration with its wire name and the schema that dispatch runs, `acting` included. */
export type WiredMethod = Method & {
  readonly method: string
  readonly params: z.ZodType
  readonly scope: string
  /** True: some role is required in a scope, which is checked with the input. */
  readonly isScoped: boolean
}

/** What a client may send: the declared input, and `acting` if the method resolves an actor. */
export type InputOf<X extends Method> = z.input<X['input']> &
  (X['auth']['actor'] extends 'none' ? unknown : { acting?: string | undefined })
export type OutputOf<X extends Method> = z.output<X['output']>
export type ReasonOf<X extends Method> = X extends Method<AuthSpec, z.ZodType, z.ZodType, infer E> ? E : never
