import type { z } from 'zod'
import type { Actions } from '../actions.ts'
import type { InputOf, Method, OutputOf, ReasonOf } from '../core/method.ts'
import type { Route } from '../core/route.ts'
import type { Routes } from '../routes.ts'
import { type Answer, CellkeepError, type CommonReason, TransportError } from './errors.ts'

export { type Answer, CellkeepError, type CommonReason, TransportError } from './errors.ts'

export type Outcome<T, R extends string> =
  | { ok: true; result: T }
  | { ok: false; error: CellkeepError<R> | TransportError }

/** Options of a client and of one call; the call's `timeout` replaces the client's, and either signal ends it. */
export type CallOptions = {
  /** Milliseconds until a call without an answer fails, its retries included. */
  timeout?: number | undefined
  signal?: AbortSignal | undefined
}

type Params<I, C extends unknown[]> = Record<never, never> extends I ? [params?: I, ...C] : [params: I, ...C]
type WithOptions = [options?: CallOptions]
export type Methods<A, C extends unknown[] = WithOptions> = {
  [M in keyof A]: A[M] extends Method
    ? (...params: Params<InputOf<A[M]>, C>) => Promise<OutputOf<A[M]>>
    : never
}
export type Tries<A, R extends string = CommonReason, C extends unknown[] = WithOptions> = {
  [M in keyof A]: A[M] extends Method
    ? (...params: Params<InputOf<A[M]>, C>) => Promise<Outcome<OutputOf<A[M]>, ReasonOf<A[M]> | R>>
    : never
}
type AccountCalls = {
  [N in keyof Routes]: Routes[N] extends Route<infer _A, infer I, infer O>
    ? (
        ...body: undefined extends z.input<I>
          ? [body?: undefined, options?: CallOptions]
          : [body: z.input<I>, options?: CallOptions]
      ) => Promise<z.output<O>>
    : never
}

/** `client.cell_get({ id })` rejects with `CellkeepError`; `client.try.cell_get({ id })` returns it as a value. */
export type Client<A = Actions> = Methods<A> & {
  /** The same methods; they return a refusal or a `TransportError` as a value, with its reasons typed. */
  try: Tries<A>
  /** The REST routes of docs/api.md, such as login, logout and signup. They throw a refusal. */
  account: AccountCalls
  /** What `createLive`, `auditStream` and `forRequest` take from a client. */
  readonly [link]: Link<A>
}

export const link: unique symbol = Symbol.for('cellkeep.client')

/** Where a live client or a stream connects to, and with which credential. */
export type Connection = {
  /** The base URL, without a slash at its end. */
  readonly url: string
  readonly accountPath: string
  readonly fetch: typeof globalThis.fetch
  /** The headers of the next request, its credential included. */
  headers(): Record<string, string>
}
export type Link<A = unknown> = Connection & {
  readonly options: ClientOptions
  readonly rpcPath: string
  /** Sends one request. Never rejects. */
  send(
    verb: 'GET' | 'POST',
    path: string,
    body?: unknown,
    signal?: AbortSignal,
    headers?: Record<string, string>,
  ): Promise<Answer>
  /** Only carries the type. */
  readonly actions?: A
}
/** A client whose credential can be taken over. */
export type Linked<A = unknown> = { readonly [link]: Link<A> }

export type Ask = (method: string, params: unknown, signal?: AbortSignal) => Promise<Answer>
/** Stands between the methods and the service, as `retry` and `batch` do. */
export type Layer = (next: Ask, to: Link) => Ask

export type ConnectionOptions = {
  /** The base URL of the service, such as `http://localhost:4040`; it may have a path. */
  url: string
  /** An API token. Browsers use their cookie instead: the service ignores tokens that come from a page. */
  token?: string | undefined
  /** Headers of every request; browsers send none with a socket. */
  headers?: Record<string, string> | undefined
  accountPath?: string | undefined
  fetch?: typeof globalThis.fetch | undefined
}

export type ClientOptions = ConnectionOptions &
  CallOptions & {
    /** Keeps cookies outside a browser, for a program that acts for one account. A string is the first `Cookie`. */
    jar?: boolean | string | undefined
    /** Layers around each call, such as `[retry(), batch()]`. */
    use?: readonly Layer[] | undefined
    rpcPath?: string | undefined
  }

/** The connection of a client, or of options alone. */
export const connectionOf = (from: Linked | ConnectionOptions): Connection =>
  link in from
    ? from[link]
    : {
        url: from.url.replace(/\/$/, ''),
        accountPath: from.accountPath ?? '/api/account',
        fetch: from.fetch ?? globalThis.fetch,
        headers: () => ({ ...from.headers, ...(from.token && { authorization: `Bearer ${from.token}` }) }),
      }

type GetRoutes = { [N in keyof Routes]: Routes[N]['method'] extends 'GET' ? N : never }[keyof Routes]
/** The GET routes; the compiler checks the list against `routes`. */
const gets: Record<GetRoutes, 1> = { status: 1, verify: 1, options: 1 }

/**
 * A client typed by the declarations of the methods: `createClient({ url })`, or `createClient<Actions & typeof mine>({
 * url })` with methods of your own. A browser keeps the session itself. Elsewhere a program uses a `token` or a `jar`,
 * and a server that has visitors of its own uses `forRequest`.
 */
export function createClient<A = Actions>(options: ClientOptions): Client<A> {
  const { rpcPath = '/api/rpc', jar } = options
  const plain = connectionOf(options)
  const { url, accountPath, fetch } = plain
  const cookies = new Map<string, string>()
  let isWarned = false
  const keep = (cookie: string): void => {
    const [pair, name = '', value] = /^([^=;]+)=([^;]*)/.exec(cookie) ?? []
    if (jar && pair) value ? cookies.set(name, pair) : cookies.delete(name)
    else if (!isWarned && /svc_session=\w/.test(cookie)) {
      isWarned = true
      console.warn('cellkeep: no jar keeps the login; docs/client.md')
    }
  }
  if (typeof jar === 'string') jar.split(/; */).forEach(keep)

  const headers = (): Record<string, string> => ({
    ...plain.headers(),
    ...(cookies.size && { cookie: [...cookies.values()].join('; ') }),
  })
  const send: Link['send'] = async (method, path, body, signal, more) => {
    const answer: Answer = { status: 0, text: '' }
    try {
      const response = await fetch(url + path, {
        method,
        credentials: 'include',
        // Passwords and daemon tokens would follow a redirect to another host.
        redirect: 'manual',
        // Also without a body: Astro and SvelteKit refuse a POST of a program that could come from a form.
        headers: { ...headers(), ...(method === 'POST' && { 'content-type': 'application/json' }), ...more },
        // Undefined: no signal.
        signal: signal as AbortSignal,
        // Without a body this is undefined, and none is sent.
        body: JSON.stringify(body),
      })
      answer.status = response.status
      answer.retry_after = response.headers.get('retry-after')
      response.headers.getSetCookie?.().forEach(keep)
      answer.text = await response.text()
      answer.reply = answer.text ? JSON.parse(answer.text) : null
    } catch (cause) {
      answer.cause = cause
    }
    return answer
  }
  const to: Link<A> = { ...plain, options, rpcPath, headers, send }
  const post: Ask = (method, params, signal) =>
    send('POST', rpcPath, { jsonrpc: '2.0', id: 1, method, params }, signal)
  const ask = (options.use ?? []).reduceRight((next, layer) => layer(next, to), post)
  const signalOf = ({ timeout = options.timeout, signal }: CallOptions = {}): AbortSignal | undefined => {
    // A timer that is longer would fire at once.
    const own = timeout && timeout < 2e9 && AbortSignal.timeout(timeout)
    const signals = [options.signal, signal, own].filter(Boolean) as AbortSignal[]
    return signals[0] && AbortSignal.any(signals)
  }
  const attempt: Attempt = async (method, params, call) =>
    outcomeOf(method, await ask(method, params, signalOf(call)))
  const rest: Attempt = async (name, body, call) => {
    const path = `${accountPath}/${name}`
    const answer = await send(name in gets ? 'GET' : 'POST', path, body, signalOf(call))
    // Only `verify` has an empty body; a browser's redirect that is not followed has status 0.
    const isDone = answer.status < 300 && (answer.reply || (name === 'verify' && answer.status))
    return isDone ? { ok: true, result: answer.reply } : outcomeOf(name, answer)
  }
  return table(orThrow(attempt), {
    try: table(attempt),
    account: table(orThrow(rest)),
    [link]: to,
  }) as Client<A>
}

type Reply = { result?: unknown; error?: string | { data?: { reason?: string } } } | null | undefined

function outcomeOf(call: string, answer: Answer): Outcome<unknown, string> {
  const reply = answer.reply as Reply
  if (reply?.result !== undefined) return { ok: true, result: reply.result }
  const error = reply?.error
  const data = typeof error === 'string' ? { ...reply, reason: error } : error?.data
  // Proxies may answer with JSON too.
  if (!data?.reason || !/^[a-z]\w*$/.test(data.reason))
    return { ok: false, error: new TransportError(call, answer) }
  return { ok: false, error: new CellkeepError(call, data.reason, answer.status, data) }
}

export type Attempt = (name: string, input?: unknown, call?: CallOptions) => Promise<Outcome<unknown, string>>

export const orThrow =
  (attempt: Attempt) =>
  async (...call: Parameters<Attempt>): Promise<unknown> => {
    const outcome = await attempt(...call)
    if (outcome.ok) return outcome.result
    throw outcome.error
  }

/**
 * A proxy of `own` on which every other name is a method that calls `run`. It has no prototype: state libraries that
 * wrap plain objects, such as that of Svelte, would hide the methods.
 */
export const table = (run: (...call: Parameters<Attempt>) => unknown, own: object = {}): object =>
  new Proxy<Record<PropertyKey, unknown>>(Object.setPrototypeOf(own, null), {
    // `then` and `toJSON` stay undefined, so that `await` and JSON.stringify call no method.
    get: (target, name) =>
      typeof name !== 'string' || name === 'then' || name === 'toJSON' || name in target
        ? target[name]
        : (input?: unknown, call?: CallOptions) => run(name, input, call),
  })
