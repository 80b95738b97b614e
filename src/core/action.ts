import { z } from 'zod'
import type { Account, Actor, Credential, RoleGrant } from '../auth/identity.ts'
import type { Config } from '../config/config.ts'
import type { ReadOnly } from '../db/db.ts'
import type { Reason } from '../errors.ts'
import type { EventType } from '../events.ts'
import type { Registry } from '../registry/registry.ts'
import type { App } from './app.ts'
import type { Action, AuthSpec, Axis, RateLimit } from './method.ts'
import type { Fail, Work } from './mutate.ts'

/** `{ role: 'admin' }` is short for: account and actor required, with that role. */
export type AuthDeclaration = AuthSpec | { readonly role: string }

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

/** A method with side effects: its handler and its audit rows share one transaction. */
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
