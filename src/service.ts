import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Actions } from './actions.ts'
import { createAuditStreams } from './audit-stream/audit-stream.ts'
import { readCarriers } from './auth/caller.ts'
import { startCleanup } from './cleanup/cleanup.ts'
import { composeApp, type Deps } from './compose-app.ts'
import type { ParsedConfig } from './config/config.ts'
import { givenIp } from './config/ip.ts'
import type { App } from './core/app.ts'
import { carryOut } from './core/dispatch.ts'
import type { InputOf, Method, OutputOf } from './core/method.ts'
import type { Work } from './core/mutate.ts'
import type { Operator } from './core/operate.ts'
import { type TransactionOptions, transaction } from './core/transaction.ts'
import { type MethodEntry, methodsOf } from './core/wired-methods.ts'
import { startBackgroundSteps } from './db/migration/background.ts'
import { migrate } from './db/migration/migrate.ts'
import { requireSuitable } from './db/servers/suitable.ts'
import { openTransport } from './delivery/transport.ts'
import { startDelivery } from './delivery/worker.ts'
import { createEdge } from './http/edge.ts'
import type { EdgeReply, EdgeRequest } from './http/exchange.ts'
import { type FetchInfo, fetchHandler } from './http/fetch.ts'
import { exportMetrics } from './metrics.ts'
import { agreedSettings } from './nodes/agreed.ts'
import { createPresence } from './nodes/presence.ts'
import { createMeter } from './observe/meter.ts'
import { noObserver } from './observe/observer.ts'
import { createTracer } from './observe/tracer.ts'
import { inWork } from './observe/work.ts'
import { bindOperations, type Operations } from './operations.ts'
import { requireRing } from './sealing/reseal.ts'
import { createSockets } from './websocket/websocket.ts'
import { resultValue } from './wire/json-text.ts'
import { version } from './wire/version.ts'

/**
 * The caller of a method in process: the headers of a request, as Node or the Fetch standard has them, or only its
 * cookie, and the client's address. With an `idempotency_key` a mutation is carried out once, however often it is
 * called.
 */
export type CallOptions = {
  headers?: Headers | Readonly<Record<string, string | readonly string[] | undefined>> | undefined
  ip?: string | undefined
  idempotency_key?: string | undefined
}
/** Typed by the method; a name that the compiler does not know takes any params. */
type CallArguments<A, M> = M extends keyof A
  ? A[M] extends Method
    ? Record<never, never> extends InputOf<A[M]>
      ? [params?: InputOf<A[M]>, caller?: CallOptions]
      : [params: InputOf<A[M]>, caller?: CallOptions]
    : never
  : [params?: unknown, caller?: CallOptions]
/** A literal name must be that of a method; any other text may be one. */
type CallName<A, M> = M extends keyof A ? M : string extends M ? M : keyof A & string
type CallResult<A, M> = M extends keyof A ? (A[M] extends Method ? OutputOf<A[M]> : never) : unknown

/** A running service: the same object embedded, under test and behind `cellkeep start`. */
export type Service<A = Actions> = {
  /** Handles a `Request`; `info.address` is the address of the peer. */
  fetch(request: Request, info: FetchInfo): Promise<Response>
  /** Handles a request in the plain shape that `nodeListener` makes. */
  handle(request: EdgeRequest): Promise<EdgeReply>
  /** For `server.on('upgrade', service.upgrade)`: a WebSocket, or a refusal as a full HTTP response. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Calls a method in process, with the same guards as over HTTP; rejects with `ServiceError`. */
  call<const M extends (keyof A & string) | (string & {})>(
    method: CallName<A, M>,
    ...rest: CallArguments<A, M>
  ): Promise<CallResult<A, M>>
  /** Every method that this service answers. */
  readonly methods: readonly MethodEntry[]
  /** Whether a request with this path is for the service; the rest is your application's. */
  answers(path: string): boolean
  /** The operations behind the operator commands. They need no credential; audit rows name `via`. */
  readonly operations: Operations
  readonly sessions: {
    /** `operations.createSession`, for the login of your own application: pass on `set_cookie`. */
    create(
      input: Parameters<Operations['createSession']>[0] & Pick<Operator, 'via' | 'ip' | 'within'>,
    ): ReturnType<Operations['createSession']>
  }
  /** Runs your code in one transaction; operations join it through `within`. Rejects with what `work` throws. */
  transaction<T>(options: TransactionOptions, work: (tools: Work) => Promise<T>): Promise<T>
  /** Applies all pending migrations, as `cellkeep migrate` does; resolves to their names. */
  migrate(): Promise<string[]>
  /** Lists this process among the nodes of the database now; otherwise it is listed after 5 seconds. */
  join(): Promise<void>
  /** `leaving`: readiness answers `shutting_down`. `draining`: every request does. */
  leave(phase: 'leaving' | 'draining'): void
  /** Resolves once all WebSockets are closed, as `leave('draining')` asks of them; `cut` drops the remaining ones. */
  socketsClosed(cut: AbortSignal): Promise<void>
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
  /** For operator commands and tests that call the functions behind the methods. */
  readonly app: App
}

/** How long `close()` waits for sockets with running calls when the service was not drained before. */
const closeMs = 5_000

/** The composition root: makes a migrated service that is ready to answer. */
export async function composeService(parsed: ParsedConfig, deps: Deps): Promise<Service> {
  const { log } = deps
  for (const warning of parsed.warnings) log.warn({ event: 'configuration' }, warning)
  const joins = deps.heartbeat ?? true
  const meter = deps.metrics && createMeter()
  const tracer = deps.traces && createTracer(deps.traces, version)
  const observer = { ...noObserver, ...meter, tracer }
  const composed = await composeApp(parsed, { ...deps, observer }, parsed.config.migrate)
  const { app, bus, connection, pending, close: closeApp } = composed
  const open = async () => {
    if (joins && connection.connectionString !== undefined)
      await requireSuitable({ connection, statementTimeoutMs: app.config.statement_timeout_ms })
    await app.db.useReplicas()
    await requireRing(app)
    const transport = await openTransport(app)
    await app.bootstrap.prepare()
    const streams = createAuditStreams(app)
    const handle = createEdge(app, streams)
    const endMetrics = meter && deps.metrics && exportMetrics(app, { meter, registry: deps.metrics })
    return { transport, streams, handle, endMetrics }
  }
  // An application may continue after a failed start, and try again.
  const { transport, streams, handle, endMetrics } = await open().catch(async (error) => {
    await closeApp()
    throw error
  })
  const sockets = createSockets(app, handle)
  // A limiter store in the database is cleared once for all nodes.
  if (app.config.limit_store === 'memory')
    app.hub.listen(({ cleared }) => cleared && void app.limiters.clear('login_account', cleared))
  const presence = createPresence(app, {
    digests: (salt) => agreedSettings(parsed, deps, salt),
    joins,
  })
  const catchUp = (): void => {
    app.hub.catchUp()
    presence.beat()
  }
  await bus.listen({ signal: app.hub.receive, gap: catchUp })
  const endWatch = app.hub.watch()
  const endCleanup = startCleanup(app)
  const endSteps = startBackgroundSteps(connection, parsed.config.migrate === 'auto' ? pending : [], log, {
    isBehind: () => app.node.isBehind,
  })
  const endDelivery = startDelivery(app, transport)
  const operations = bindOperations(app)
  const leave: Service['leave'] = (next) => {
    if (next !== 'leaving' && next !== 'draining') throw new TypeError("leave takes 'leaving' or 'draining'.")
    // What drains has told its connections to go, and must not serve again, as after the loss of its data directory.
    if (app.node.phase === 'draining') return
    app.node.phase = next
    presence.beat()
    if (next !== 'draining') return
    app.hub.leave()
    void streams.end()
  }
  const close = async (): Promise<void> => {
    leave('draining')
    await Promise.all([streams.end(), sockets.closed(AbortSignal.timeout(closeMs))])
    endWatch()
    endMetrics?.()
    await Promise.all([endCleanup(), endSteps(), endDelivery(), presence.end()])
    await closeApp()
  }
  return {
    app,
    handle,
    fetch: fetchHandler(handle),
    call: callOf(app),
    methods: methodsOf(app),
    answers: handle.answers,
    operations,
    sessions: {
      create: ({ via, ip, within, ...input }) => operations.createSession(input, { via, ip, within }),
    },
    transaction: (options, work) => transaction(app, options, work),
    migrate: async () => (await migrate(connection, { mode: 'run', log })).applied,
    join: presence.join,
    leave,
    upgrade: sockets.upgrade,
    socketsClosed: sockets.closed,
    close,
    [Symbol.asyncDispose]: close,
  }
}

const callOf =
  (app: App): Service['call'] =>
  async (method: string, ...[params, caller = {}]: [params?: unknown, caller?: CallOptions]) => {
    const call = {
      method,
      params,
      mayHoldBadText: true,
      viaGet: false,
      idempotency_key: caller.idempotency_key,
      carriers: readCarriers(headerOf(caller.headers), app.sessionCookie).carriers,
      ip: givenIp(caller.ip ?? '127.0.0.1'),
      request_id: 'in-process',
      trace: {},
    }
    return await inWork({ site: 'call', fields: call.trace }, () =>
      carryOut(app, 'call', call, (result) => resultValue(result) as never),
    )
  }

/** Names of headers are compared without case, so that a call with `Authorization` does not become anonymous. */
function headerOf(headers: CallOptions['headers'] = {}): (name: string) => string | undefined {
  if (typeof headers !== 'object' || headers === null)
    throw new TypeError('`headers` must be those of a request: an object or a `Headers`.')
  // Not `instanceof`: an application may have the `Headers` of another implementation.
  const entries = Symbol.iterator in headers ? [...headers] : Object.entries(headers)
  const found = new Map(entries.map(([name, value]) => [name.toLowerCase(), value]))
  return (name) => found.get(name)?.toString()
}
