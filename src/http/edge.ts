import { randomUUID } from 'node:crypto'
import { isIPv4 } from 'node:net'
import type { AuditStreams } from '../audit-stream/audit-stream.ts'
import { readCarriers } from '../auth/caller.ts'
import { canonicalIp } from '../config/ip.ts'
import type { App } from '../core/app.ts'
import { asServiceError } from '../core/boundary.ts'
import { countAnswer } from '../core/tally.ts'
import type { Readiness, ReadyState } from '../db/servers/ready.ts'
import { invalidRequest, refusal, StartError } from '../errors.ts'
import { logWarnings } from '../log/log.ts'
import { inWork, tenths } from '../observe/work.ts'
import type { BuiltinReason } from '../reasons.ts'
import { routeList } from '../routes.ts'
import { admitUpgrade } from '../websocket/upgrade.ts'
import { clientIp, compileTrustedProxies } from './client-ip.ts'
import { documentPaths, sendDocument } from './documents.ts'
import { type EdgeReply, type EdgeRequest, flatReply, jsonReply, readJsonText } from './exchange.ts'
import { home, wantsPage } from './home.ts'
import { type RequestInfo, rpcGet, rpcPost } from './jsonrpc.ts'
import { observeRequest, traced } from './observe-request.ts'
import { compileOrigins } from './origin.ts'
import { runRoute } from './rest.ts'
import { createSite } from './site.ts'

type Surface = {
  /** The name of its path in metrics and traces. */
  route: string
  verbs: readonly string[]
  /** True: the `Origin` header is checked even without a session cookie. */
  checksOrigin?: boolean
  /** True: a request may have an `Idempotency-Key`. */
  takesKey?: boolean
  /** Health paths: no origin check, no cookie handling. */
  exempt?: boolean
  handle(request: EdgeRequest, info: RequestInfo): Promise<EdgeReply>
}

const requestIdForm = /^[A-Za-z0-9._-]{1,128}$/

/** The checks of every request, in the order of the numbers below. The raw path is matched, never decoded. */
export function createEdge(app: App, readiness: Readiness, streams: AuditStreams) {
  const { config, node, tally } = app
  const isAllowed = compileOrigins(config.allowed_origins)
  const proxies = compileTrustedProxies(config.trusted_proxies)
  const surfaces = surfaceTable(app, readiness, streams)
  const site = createSite(app)
  const pages: Surface = {
    route: 'pages',
    verbs: ['GET', 'HEAD'],
    exempt: true,
    handle: (request) => (request.path === '/' && !wantsPage(request) ? home(app) : site.answer(request)),
  }
  const surfaceOf = (path: string): Surface | undefined =>
    surfaces.get(path) ?? (site.answers(path) ? pages : undefined)
  let warned = false
  const warnIgnored = (): void => {
    if (!warned)
      app.log.warn(
        { event: 'configuration' },
        'X-Forwarded-For is ignored: its sender is not in CELLKEEP_TRUSTED_PROXIES (option trusted_proxies)',
      )
    warned = true
  }

  const addressOf = (request: EdgeRequest): string => {
    const { address } = request
    const forwarded = request.header('x-forwarded-for')
    // An IPv4 address has one form only.
    if (forwarded === undefined && isIPv4(address ?? '')) return address as string
    return clientIp(address, forwarded, proxies, warnIgnored)
  }

  /** An error it throws becomes the flat body of its reason. */
  async function answer(request: EdgeRequest, sent: Sent, info: RequestInfo): Promise<EdgeReply> {
    // 1. draining
    if (node.phase === 'draining') throw refusal('shutting_down')

    // 2. a declared length over the limit; the body stays unread
    if (Number(request.header('content-length') ?? 0) > config.body_limit) throw refusal('payload_too_large')

    // 3. the origin
    const { surface } = sent
    const isGuarded = surface?.checksOrigin || info.carriers.cookie.state !== 'none'
    if (sent.origin !== undefined && !sent.isAllowed && isGuarded && !surface?.exempt)
      throw refusal('forbidden_origin')

    // 4. the path, then the verb
    if (!surface) throw refusal('not_found')
    const isPreflight = request.method === 'OPTIONS' && request.header('access-control-request-method')
    if (config.cors && sent.isAllowed && isPreflight)
      return { status: 204, headers: { ...preflightHeaders }, body: null }
    if (!surface.verbs.includes(request.method)) {
      info.trace.reason = 'method_not_allowed'
      const reply = refuse('method_not_allowed')
      reply.headers.allow = surface.verbs.join(', ')
      return reply
    }

    // 5. an idempotency key that would be ignored
    if (!surface.takesKey && !surface.exempt && request.header('idempotency-key') !== undefined)
      throw invalidRequest('idempotency_not_supported')

    // 6. the surface
    return await surface.handle(request, info)
  }

  const serve = async (request: EdgeRequest): Promise<EdgeReply> => {
    const started = performance.now()
    const sentId = request.header('x-request-id')
    const request_id = sentId !== undefined && requestIdForm.test(sentId) ? sentId : randomUUID()
    const sentOrigin = request.header('origin')
    const sent: Sent = {
      surface: surfaceOf(request.path),
      origin: sentOrigin,
      isAllowed: sentOrigin !== undefined && isAllowed(sentOrigin),
    }
    const { carriers, discarded } = readCarriers(request.header, app.sessionCookie)
    const trace: RequestInfo['trace'] = {}
    // Health checks go on while a node drains.
    const counted = sent.surface?.exempt ? 0 : 1
    tally.running += counted
    let ip = ''
    let reply: EdgeReply
    const route = sent.surface?.route ?? 'unknown'
    try {
      ip = addressOf(request)
      const info = { carriers, ip, request_id, trace }
      reply = await inWork({ site: route, fields: trace }, () => answer(request, sent, info))
    } catch (error) {
      const { status, data } = asServiceError(error, app.log, request_id)
      trace.reason = data.reason
      reply = flatReply(status, data)
    } finally {
      tally.running -= counted
    }
    if (endsConnection.has(trace.reason ?? '')) {
      reply.close = true
      reply.headers.connection = 'close'
    }
    if (config.cors) addCors(reply, sent)
    if (carriers.cookie.state === 'bad' && sent.surface && !sent.surface.exempt) clearSession(reply, app)
    if (discarded.length > 0 && config.env === 'development')
      reply.headers['x-svc-auth-debug'] = discarded.join(', ')
    reply.headers['x-request-id'] = request_id
    const took = performance.now() - started
    countAnswer(tally, trace.reason, took)
    observeRequest(app, { request, route, status: reply.status, started, reason: trace.reason })
    app.log.info(
      {
        request_id,
        method: request.method,
        path: request.path.slice(0, 200),
        status: reply.status,
        duration_ms: tenths(took),
        ip,
        ...trace,
      },
      'request',
    )
    return reply
  }
  const handle = traced(app, serve, {
    routeOf: (path) => surfaceOf(path)?.route ?? 'unknown',
    isTrusted: ({ address }) => proxies(canonicalIp(address ?? '') ?? ''),
  })
  return Object.assign(handle, { answers: (path: string): boolean => surfaceOf(path) !== undefined })
}

/** Clears the session cookie, unless the reply sets it; one that sets another cookie clears it too. */
function clearSession({ headers }: EdgeReply, { sessionCookie }: App): void {
  const set = [headers['set-cookie'] ?? []].flat()
  if (!set.some((one) => one.startsWith(`${sessionCookie.name}=`)))
    headers['set-cookie'] = [...set, sessionCookie.clear()]
}

/** What the path and the `Origin` header of a request resolve to. */
type Sent = { surface: Surface | undefined; origin: string | undefined; isAllowed: boolean }

/** Refusals that end the connection: the rest of the request is not read, or the server is stopping. */
const endsConnection = new Set(['payload_too_large', 'shutting_down'])

/** Whether the sender has a valid credential; an invalid one is refused. */
async function isKnown(app: App, { carriers, ip }: RequestInfo): Promise<boolean> {
  const { cookie, bearer, daemon } = carriers
  if (cookie.state !== 'good' && bearer === undefined && daemon === undefined) return false
  if (await app.callers.read(carriers, false, ip)) return true
  throw refusal('authentication_required')
}

function refuse(reason: BuiltinReason): EdgeReply {
  const { status, data } = refusal(reason)
  return flatReply(status, data)
}

function surfaceTable(app: App, readiness: Readiness, streams: AuditStreams): Map<string, Surface> {
  const { config, node } = app
  const surfaces = new Map<string, Surface>()
  const mount = (path: string, surface: Omit<Surface, 'route'>): void => {
    if (surfaces.has(path)) throw new StartError('configuration', `Two surfaces have the path ${path}.`, 78)
    surfaces.set(path, { route: path, ...surface })
  }
  mount(config.rpc_path, {
    verbs: ['GET', 'POST'],
    takesKey: true,
    handle: async (request, info) => {
      const key = request.header('idempotency-key')
      if (request.method === 'GET') return rpcGet(app, info, request.query, key)
      const sender = { ip: info.ip, isKnown: () => isKnown(app, info) }
      const text = await readJsonText(request, config.body_limit, sender)
      return rpcPost(app, info, text, request.hasEnded, key)
    },
  })
  for (const route of routeList) {
    if (route.enabled && !route.enabled(app)) continue
    mount(`${config.account_path}${route.path}`, {
      verbs: route.method === 'GET' ? ['GET', 'HEAD'] : ['POST'],
      ...(route.checksOrigin && { checksOrigin: true }),
      handle: (request, info) => runRoute(app, route, request, info),
    })
  }
  if (config.audit_stream)
    mount(config.audit_stream_path, { verbs: ['GET'], checksOrigin: true, handle: streams.open })
  if (config.ws)
    mount(config.ws_path, {
      verbs: ['GET'],
      checksOrigin: true,
      handle: (request, info) => admitUpgrade(app, request, info),
    })
  if (config.openrpc === 'public')
    for (const [path, make] of Object.entries(documentPaths))
      mount(path, {
        verbs: ['GET', 'HEAD'],
        handle: (request, info) => sendDocument(app, make, request, info),
      })
  const health = (handle: Surface['handle']) => ({ verbs: ['GET', 'HEAD'], exempt: true, handle })
  const alive = (): EdgeReply => jsonReply(200, '{"status":"ok"}')
  const live = health(async () => alive())
  const unlessLeaving = (ask: () => Promise<ReadyState>, answer: (state: ReadyState) => EdgeReply) =>
    health(async () => {
      if (node.phase !== 'serving') return refuse('shutting_down')
      if (node.isDrained) return refuse('draining')
      return answer(await ask())
    })
  const ready = unlessLeaving(readiness.check, (state) => {
    if (!state.ready) return refuse(state.reason)
    const warnings = [...app.bootstrap.warnings(), ...logWarnings(), ...app.warnings]
    return jsonReply(200, JSON.stringify({ ready: true, ...(warnings.length > 0 && { warnings }) }))
  })
  const serving = unlessLeaving(readiness.recent, (state) => {
    if (state.ready) return alive()
    // If the database is down, a balancer would otherwise take out every node and cut all connections.
    const isOurs = state.reason !== 'schema_drift' && state.reason !== 'db_other_database'
    const mayReturn = isOurs && state.sinceMs < config.serving_grace_s * 1000
    return mayReturn ? alive() : refuse(state.reason)
  })
  for (const path of ['/health', '/health/live']) mount(path, live)
  mount('/health/serving', serving)
  for (const path of ['/ready', '/health/ready']) mount(path, ready)
  return surfaces
}

function addCors({ headers }: EdgeReply, { origin, isAllowed }: Sent): void {
  // Also for requests without an `Origin`: a cache must not serve this answer to a cross-origin page.
  if (!/\borigin\b/i.test(String(headers.vary)))
    headers.vary = [headers.vary ?? [], 'Origin'].flat().join(', ')
  if (!isAllowed) return
  headers['access-control-allow-origin'] = origin as string
  headers['access-control-allow-credentials'] = 'true'
  headers['access-control-expose-headers'] = 'Retry-After, X-Request-Id, Idempotency-Replayed'
}

const preflightHeaders = {
  vary: 'Origin',
  'x-content-type-options': 'nosniff',
  'access-control-allow-methods': 'GET, HEAD, POST',
  'access-control-allow-headers': 'Content-Type, X-Request-Id, Last-Event-ID, Idempotency-Key',
  'access-control-max-age': '600',
}
