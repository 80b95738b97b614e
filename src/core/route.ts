import type { z } from 'zod'
import type { Carriers } from '../auth/caller.ts'
import type { Config } from '../config/config.ts'
import type { RestLimiter } from '../limits/limiters.ts'
import type { BuiltinReason, Reason } from '../reasons.ts'
import type { App } from './app.ts'
import type { CallerOf } from './declare.ts'
import type { AuthSpec, RateLimit } from './method.ts'

/** A REST route below the account path. */
export type Route<
  A extends AuthSpec = AuthSpec,
  I extends z.ZodType = z.ZodType,
  O extends z.ZodType = z.ZodType,
  M extends 'GET' | 'POST' = 'GET' | 'POST',
> = {
  readonly doc: string
  readonly method: M
  /** Relative to the account path. */
  readonly path: string
  readonly auth: A
  /** True: unknown query keys are ignored, as `/verify` and `/status` do. Otherwise they are refused. */
  readonly anyQuery?: boolean
  /** The query keys that the handler reads, for the descriptions. */
  readonly query?: z.ZodObject
  /** The limiters that an attempt holds slots of; `rateLimitOf` says which are switched on. */
  readonly rate_limit?: RouteLimiters
  readonly input?: I
  /** Left out: the body is empty. */
  readonly output?: O
  readonly errors?: readonly Reason[]
  /** Clears the cookie even if the guards refuse, as on logout with a dead session. */
  readonly alwaysClears?: boolean
  /** The origin is checked even without a cookie, because these routes set one. */
  readonly checksOrigin?: boolean
  /** True: also for a caller who has yet to enrol a second factor that a role requires. */
  readonly before_enrolment?: boolean
  /** False: the route answers 404. */
  readonly enabled?: (app: App) => boolean
  readonly handler: (input: never, context: never) => Promise<RouteReply<unknown>>
}

export type RouteLimiters = {
  readonly ip?: RestLimiter
  /** Per account, or per name that the caller submits. */
  readonly account?: RestLimiter
}

/** The axes that limit a route; an axis whose limiter is switched off does not count. */
export function rateLimitOf({ rate_limit }: Route, config: Config): RateLimit | undefined {
  const isOn = (limiter: RestLimiter | undefined): boolean =>
    limiter !== undefined && config[`limit_${limiter}`] !== null
  const [ip, account] = [isOn(rate_limit?.ip), isOn(rate_limit?.account)]
  if (ip && account) return 'both'
  return ip ? 'ip' : account ? 'account' : undefined
}

/** Takes slots of the limiters that the route declares. */
export type RouteHold = {
  /** For the client address. `isCharged`, here and below, decides instead of the reason of a refusal. */
  ip(isCharged?: () => boolean): Promise<void>
  /** For an account or name; does nothing if the route has no such limiter. */
  account(key: string, isCharged?: () => boolean): Promise<void>
  /** For the client address, of another limiter. */
  also: (limiter: RestLimiter, isCharged: () => boolean) => Promise<void>
}

/** Runs an attempt under the route's limiters; see `Limiters.attempt`. */
export type Attempt = <T>(
  charged: readonly BuiltinReason[],
  work: (hold: RouteHold) => Promise<T>,
) => Promise<T>

type RouteReply<B> = {
  /** Null: the body is empty. */
  body: B
  headers?: Record<string, string>
  /** Complete `Set-Cookie` values, created after the commit. */
  cookie?: string | string[]
}

export type RouteContext<A extends AuthSpec> = Pick<CallerOf<A>, 'account' | 'credential'> & {
  app: App
  attempt: Attempt
  carriers: Carriers
  /** The token in the flow cookie; null without one. */
  flow: string | null
  query: URLSearchParams
  ip: string
  request_id: string
}

/** Declares a route; account and credential are non-null where the axis says required. */
export function route<
  const A extends AuthSpec,
  I extends z.ZodType = z.ZodUndefined,
  O extends z.ZodType = z.ZodNull,
  const M extends 'GET' | 'POST' = 'POST',
>(
  spec: Omit<Route<A, I, O, M>, 'handler'> & {
    handler(input: z.output<I>, context: RouteContext<A>): Promise<RouteReply<z.input<O>>>
  },
): Route<A, I, O, M> {
  return spec as unknown as Route<A, I, O, M>
}
