import type { z } from 'zod'
import type { Actions } from '../actions.ts'
import type { Action, InputOf, OutputOf, ReasonOf } from '../core/method.ts'
import type { Route } from '../core/route.ts'
import type { Reason } from '../errors.ts'
import type { Routes } from '../routes.ts'

/** Reasons that any call may fail with, besides those that its method lists. */
export type CommonReason = Extract<
  Reason,
  | 'invalid_params'
  | 'authentication_required'
  | 'account_vanished'
  | 'credential_type_required'
  | 'token_scope_required'
  | 'insufficient_permissions'
  | 'actor_required'
  | 'actor_not_on_account'
  | 'no_actors_on_account'
  | 'rate_limited'
  | 'service_unavailable'
  | 'timeout'
  | 'internal_error'
>

/** A refused call. Switch on `reason`; `data` holds the fields that docs/errors.md lists for it. */
export class CellkeepError<R extends string = string> extends Error {
  readonly reason: R
  readonly status: number
  readonly data: Record<string, unknown>

  constructor(reason: R, status: number, data: Record<string, unknown>) {
    super(reason)
    this.name = 'CellkeepError'
    this.reason = reason
    this.status = status
    this.data = data
  }
}

export type Outcome<T, R extends string> = { ok: true; result: T } | { ok: false; error: CellkeepError<R> }

type Params<I> = Record<never, never> extends I ? [params?: I] : [params: I]
export type Methods<A> = {
  [M in keyof A]: A[M] extends Action ? (...params: Params<InputOf<A[M]>>) => Promise<OutputOf<A[M]>> : never
}
export type Tries<A, R extends string = CommonReason> = {
  [M in keyof A]: A[M] extends Action
    ? (...params: Params<InputOf<A[M]>>) => Promise<Outcome<OutputOf<A[M]>, ReasonOf<A[M]> | R>>
    : never
}
type AccountCalls = {
  [N in keyof Routes]: Routes[N] extends Route<infer _A, infer I, infer O>
    ? (...body: undefined extends z.input<I> ? [] : [body: z.input<I>]) => Promise<z.output<O>>
    : never
}

/** `client.cell_get({ id })` rejects with `CellkeepError`; `client.try.cell_get({ id })` returns it as a value. */
export type Client<A = Actions> = Methods<A> & {
  /** The same methods; they return a refusal as a value, with its reasons typed. */
  try: Tries<A>
  /** The REST routes: login, logout, password, status, verify, bootstrap, signup. */
  account: AccountCalls
}

export type ClientOptions = {
  /** The base URL of the service, such as `http://localhost:4040`. */
  url: string
  rpcPath?: string
  accountPath?: string
  /** Headers of every request. */
  headers?: Record<string, string>
  fetch?: typeof globalThis.fetch
}

const absent = new Set(['then', 'toJSON'])

type GetRoutes = { [N in keyof Routes]: Routes[N]['method'] extends 'GET' ? N : never }[keyof Routes]
/** The GET routes; the compiler checks the list against `routes`. */
const gets: Record<GetRoutes, 1> = { status: 1, verify: 1 }

/**
 * A client typed by the declarations of the methods: `createClient({ url })`, or
 * `createClient<Actions & typeof mine>({ url })` with methods of your own. A browser keeps the session cookie;
 * elsewhere the client does.
 */
export function createClient<A = Actions>(options: ClientOptions): Client<A> {
  const {
    url,
    rpcPath = '/api/rpc',
    accountPath = '/api/account',
    headers,
    fetch = globalThis.fetch,
  } = options
  let cookie = ''

  const send = async (
    path: string,
    method: string,
    body?: unknown,
  ): Promise<[number, Record<string, unknown>]> => {
    const response = await fetch(url + path, {
      method,
      credentials: 'include',
      headers: {
        ...headers,
        ...(cookie && { cookie }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    for (const set of response.headers.getSetCookie?.() ?? []) {
      const pair = set.slice(0, set.indexOf(';'))
      cookie = pair.endsWith('=') ? '' : pair
    }
    const text = await response.text()
    return [response.status, text ? JSON.parse(text) : null]
  }
  const attempt = async (method: string, params?: unknown): Promise<Outcome<unknown, string>> => {
    const [status, reply] = await send(rpcPath, 'POST', { jsonrpc: '2.0', id: 1, method, params })
    if ('result' in reply) return { ok: true, result: reply.result }
    const data = ((reply.error as { data?: object } | undefined)?.data ?? {
      ...reply,
      reason: reply.error,
    }) as { reason: string }
    return { ok: false, error: new CellkeepError(data.reason, status, data) }
  }
  const call = async (method: string, params?: unknown): Promise<unknown> => {
    const outcome = await attempt(method, params)
    if (outcome.ok) return outcome.result
    throw outcome.error
  }
  const rest = async (name: string, body?: unknown): Promise<unknown> => {
    const [status, reply] = await send(
      `${accountPath}/${name}`,
      Object.hasOwn(gets, name) ? 'GET' : 'POST',
      body,
    )
    if (status < 300) return reply
    throw new CellkeepError(String(reply?.error), status, reply)
  }
  return table(call, { try: table(attempt), account: table(rest) }) as Client<A>
}

/** A proxy of `own` on which every other name is a method that calls `run`. */
export const table = (run: (name: string, input?: unknown) => unknown, own: object = {}): object =>
  new Proxy(own, {
    // `then` and `toJSON` stay undefined, so that `await` and JSON.stringify call no method.
    get: (target, name) => {
      if (Object.hasOwn(target, name)) return Reflect.get(target, name)
      return typeof name === 'string' && !absent.has(name) ? (input?: unknown) => run(name, input) : undefined
    },
  })
