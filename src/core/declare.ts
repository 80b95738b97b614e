import { z } from 'zod'
import type { Account, Actor, Credential, RoleGrant } from '../auth/identity.ts'
import type { Config } from '../config/table.ts'
import type { ReadOnly } from '../db/db.ts'
import type { EventType } from '../events.ts'
import type { Reason } from '../reasons.ts'
import type { Registry } from '../registry/registry.ts'
import { isPlainObject } from '../wire/input.ts'
import type { Text } from '../wire/json-text.ts'
import type { App } from './app.ts'
import type { AuthSpec, Axis, Method, RateLimit, ScopedRole } from './method.ts'
import type { Fail, Work } from './mutate.ts'

/** `{ role: 'admin' }` is short for: account and actor required, with that role. */
type AuthDeclaration =
  | (Omit<AuthSpec, 'roles'> & { readonly roles?: readonly (string | object)[] })
  | { readonly role: string }

/** Further checks of D: it has no other keys, and its scoped roles read the input of this method. */
type Auth<D extends AuthDeclaration, I extends z.ZodType> = D & {
  readonly roles?: readonly (string | ScopedRole<z.output<I>>)[]
} & { readonly [K in Exclude<keyof D, keyof AuthSpec | 'role'>]: never }

type AuthOf<D extends AuthDeclaration> = D extends { role: infer R extends string }
  ? { account: 'required'; actor: 'required'; roles: readonly [R] }
  : Extract<D, AuthSpec>

type Present<X extends Axis, T> = X extends 'required' ? T : X extends 'optional' ? T | null : null

/** The caller, as far as the axes of the declaration resolve it. */
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

type Declaration<
  D extends AuthDeclaration,
  I extends z.ZodType,
  O extends z.ZodType,
  E extends Reason,
  R,
  C,
  T,
> = {
  doc: string
  auth: Auth<D, I>
  input?: I | undefined
  output: O
  errors?: readonly E[] | undefined
  rate_limit?: RateLimit | undefined
  rate_limit_group?: string | undefined
  before_enrolment?: true | undefined
  enabled?: ((config: Config, registry: Registry) => boolean) | undefined
  /**
   * The handler resolves to the JSON text of its result, or to its pieces, made by the database for instance. The text
   * is sent unchanged.
   */
  json_text?: T
  refine?(input: z.output<I>, context: CallerOf<AuthOf<D>> & { app: App; fail: Fail<E> }): R
  handler(input: R, context: C): Promise<T extends true ? Text : z.input<O>>
}

type NoInput = z.ZodObject<Record<never, never>, z.core.$strict>

/** A method without side effects: no transaction, no `audit`, also reachable by GET. */
export function query<
  const D extends AuthDeclaration,
  O extends z.ZodType,
  I extends z.ZodType = NoInput,
  const E extends Reason = never,
  R = z.output<I>,
  const T extends true | undefined = undefined,
>(
  spec: Declaration<D, I, O, E, R, QueryContext<AuthOf<D>, E>, T> & {
    /** A replica may answer the reads of `db` once it has replayed everything committed before the call. */
    replica?: true | undefined
  },
): Method<AuthOf<D>, I, O, NoInfer<E>> {
  return declare(spec, false)
}

/** A method with side effects: its handler and its audit rows share one transaction. */
export function mutation<
  const D extends AuthDeclaration,
  O extends z.ZodType,
  I extends z.ZodType = NoInput,
  const E extends Reason = never,
  R = z.output<I>,
  const T extends true | undefined = undefined,
>(
  spec: Declaration<D, I, O, E, R, MutationContext<AuthOf<D>, E>, T> & {
    event: EventType
    snapshot?: true | undefined
    repeat?: false | undefined
    /** The result holds a secret: a call that repeats its idempotency key learns only that it was done. */
    secret_reply?: true | undefined
    budget?: string | undefined
  },
): Method<AuthOf<D>, I, O, NoInfer<E>> {
  return declare(spec, true)
}

/** Unknown keys are passed on, so that the start can refuse them and name the method. */
function declare<
  D extends AuthDeclaration,
  I extends z.ZodType,
  O extends z.ZodType,
  E extends Reason,
  R,
  C,
  T,
>(
  { doc, errors = [], input, auth, ...rest }: Declaration<D, I, O, E, R, C, T>,
  side_effects: boolean,
): Method<AuthOf<D>, I, O, E> {
  return {
    ...rest,
    kind: 'request_response',
    initiator: 'frontend',
    async: true,
    auth: spelledOut(auth),
    side_effects,
    input: input ?? z.strictObject({}),
    description: doc,
    error_reasons: errors,
  } as unknown as Method<AuthOf<D>, I, O, E>
}

const spelledOut = (auth: object): unknown =>
  isPlainObject(auth) && Object.keys(auth).join() === 'role'
    ? { account: 'required', actor: 'required', roles: [auth.role] }
    : auth
