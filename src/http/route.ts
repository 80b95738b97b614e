import type { z } from 'zod'
import type { Carriers } from '../auth/carriers.ts'
import type { AuthSpec, CallerOf } from '../core/action.ts'
import type { App } from '../core/app.ts'
import type { Reason } from '../errors.ts'

/** A REST route of the account prefix (contract 1, section 8; contract 2, section 8). */
export type Route<
  A extends AuthSpec = AuthSpec,
  I extends z.ZodType = z.ZodType,
  O extends z.ZodType = z.ZodType,
  M extends 'GET' | 'POST' = 'GET' | 'POST',
> = {
  readonly doc: string
  readonly method: M
  /** Below the account mount. */
  readonly path: string
  readonly auth: A
  /** `/verify` and `/status` ignore query keys they do not know; every other query is strict. */
  readonly anyQuery?: boolean
  readonly input?: I
  /** Left out: an empty body. */
  readonly output?: O
  readonly errors?: readonly Reason[]
  /** Clears the cookie also where the guards refuse (logout with a dead session). */
  readonly alwaysClears?: boolean
  /** Must match the allow-list even without a cookie: these routes set one (contract 1, section 2.2). */
  readonly checksOrigin?: boolean
  /** False: the route does not exist, 404. */
  readonly enabled?: (app: App) => boolean
  readonly handler: (input: never, context: never) => Promise<RouteReply<unknown>>
}

export type RouteReply<B> = {
  /** Null: an empty body. */
  body: B
  headers?: Record<string, string>
  /** A whole `Set-Cookie` value, made after the commit. */
  cookie?: string
}

export type RouteContext<A extends AuthSpec> = Pick<CallerOf<A>, 'account' | 'credential'> & {
  app: App
  carriers: Carriers
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
