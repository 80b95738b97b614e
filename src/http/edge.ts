import { randomUUID } from 'node:crypto'
import { isIPv4 } from 'node:net'
import type { AuditStreams } from '../audit-stream/audit-stream.ts'
import { readCarriers } from '../auth/caller.ts'
import type { App } from '../core/app.ts'
import { asServiceError } from '../core/boundary.ts'
import type { Readiness } from '../db/ready.ts'
import { type BuiltinReason, refusal, StartError } from '../errors.ts'
import { logWarnings } from '../log/log.ts'
import { routeList } from '../routes.ts'
import { admitUpgrade } from '../websocket/upgrade.ts'
import { clientIp, compileTrustedProxies } from './client-ip.ts'
import { documentPaths, sendDocument } from './documents.ts'
import { type EdgeReply, type EdgeRequest, flatReply, jsonReply, readJsonText } from './exchange.ts'
import { home, wantsPage } from './home.ts'
import { type RequestInfo, rpcGet, rpcPost } from './jsonrpc.ts'
import { compileOrigins } from './origin.ts'
import { runRoute } from './rest.ts'
import { createSite } from './site.ts'

/** `serving` → `leaving` (only readiness answers 503) → `draining` (every request gets 503). */
export type Phase = { now: 'serving' | 'leaving' | 'draining' }

type Surface = {
  verbs: readonly string[]
  /** True: the `Origin` header is checked even without a session cookie. */
  checksOrigin?: boolean
  /** Health paths: no origin check, no cookie handling. */
  exempt?: boolean
  handle(request: EdgeRequest, info: RequestInfo): Promise<EdgeReply>
}

const requestIdForm = /^[A-Za-z0-9._-]{1,128}$/

/** The checks of every request, in the order of the numbers below. The raw path is matched, never decoded. */
export function createEdge(app: App, readiness: Readiness, phase: Phase, streams: AuditStreams) {
  const { config } = app
  const isAllowed = compileOrigins(config.allowed_origins)
  const proxies = compileTrustedProxies(config.trusted_proxies)
  const surfaces = surfaceTable(app, readiness, phase, streams)
  const site = createSite(app)
  const pages: Surface = {
    verbs: ['GET', 'HEAD'],
    exempt: true,
    handle: (request) => (request.path === '/' && !wantsPage(request) ? home(app) : site.answer(request)),
  }
  for (const path of surfaces.keys())
    if (site.answers(path)) throw new StartError('configuration', `Two surfaces have the path ${path}.`, 78)
  const surfaceOf = (path: string): Surface | undefined =>
    surfaces.get(path) ?? (site.answers(path) ? pages : undefined)
  let warned = false
  const warnIgnored = (): void => {
    if (!warned) app.log.warn('X-Forwarded-For is ignored: its sender is not in CELLKEEP_TRUSTED_PROXIES')
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
    if (phase.now === 'draining') throw refusal('shutting_down')

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

    // 5. the surface
    return await surface.handle(request, info)
  }

  const handle = async (request: EdgeRequest): Promise<EdgeReply> => {
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
    let ip = ''
    let reply: EdgeReply
    try {
      ip = addressOf(request)
      reply = await answer(request, sent, { carriers, ip, request_id, trace })
    } catch (error) {
      const { status, data } = asServiceError(error, app.log, request_id)
      trace.reason = data.reason
      reply = flatReply(status, data)
    }
    if (endsConnection.has(trace.reason ?? '')) {
      reply.close = true
      reply.headers.connection = 'close'
    }
    if (config.cors && sent.isAllowed) Object.assign(reply.headers, corsHeaders(sentOrigin as string))
    if (carriers.cookie.state === 'bad' && sent.surface && !sent.surface.exempt)
      reply.headers['set-cookie'] ??= app.sessionCookie.clear()
    if (discarded.length > 0 && config.env === 'development')
      reply.headers['x-svc-auth-debug'] = discarded.join(', ')
    reply.headers['x-request-id'] = request_id
    app.log.info(
      {
        request_id,
        method: request.method,
        path: request.path.slice(0, 200),
        status: reply.status,
        duration_ms: Math.round((performance.now() - started) * 10) / 10,
        ip,
        ...trace,
      },
      'request',
    )
    return reply
  }
  return Object.assign(handle, { answers: (path: string): boolean => surfaceOf(path) !== undefined })
}

/** What the path and the `Origin` header of a request lead to. */
type Sent = { surface: Surface | undefined; origin: string | undefined; isAllowed: boolean }

/** Refusals that end the connection: the rest of the request is not read, or the server is stopping. */
const endsConnection = new Set(['payload_too_large', 'shutting_down'])

/** Whether the sender has a valid credential; refuses one that is not. */
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

function surfaceTable(
  app: App,
  readiness: Readiness,
  phase: Phase,
  streams: AuditStreams,
): Map<string, Surface> {
  const { config } = app
  const surfaces = new Map<string, Surface>()
  const mount = (path: string, surface: Surface): void => {
    if (surfaces.has(path)) throw new StartError('configuration', `Two surfaces have the path ${path}.`, 78)
    surfaces.set(path, surface)
  }
  mount(config.rpc_path, {
    verbs: ['GET', 'POST'],
    handle: async (request, info) =>
      request.method === 'GET'
        ? rpcGet(app, info, request.query)
        : rpcPost(
            app,
            info,
            await readJsonText(request, config.body_limit, () => isKnown(app, info)),
            request.isGone,
          ),
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
  const live: Surface = {
    verbs: ['GET', 'HEAD'],
    exempt: true,
    handle: async () => jsonReply(200, '{"status":"ok"}'),
  }
  const ready: Surface = {
    verbs: ['GET', 'HEAD'],
    exempt: true,
    handle: async () => {
      if (phase.now !== 'serving') return refuse('shutting_down')
      const state = await readiness.check()
      if (!state.ready) return refuse(state.reason)
      const warnings = [...app.bootstrap.warnings(), ...logWarnings()]
      return jsonReply(200, JSON.stringify({ ready: true, ...(warnings.length > 0 && { warnings }) }))
    },
  }
  const serving: Surface = {
    verbs: ['GET', 'HEAD'],
    exempt: true,
    handle: async (request, info) => {
      if (phase.now !== 'serving') return refuse('shutting_down')
      const state = await readiness.check()
      // A balancer that takes out every node because their database is away would cut all connections.
      if (state.ready) return await live.handle(request, info)
      const mayReturn = state.reason !== 'schema_drift' && state.sinceMs < config.serving_grace_s * 1000
      return mayReturn ? await live.handle(request, info) : refuse(state.reason)
    },
  }
  for (const path of ['/health', '/health/live']) mount(path, live)
  mount('/health/serving', serving)
  for (const path of ['/ready', '/health/ready']) mount(path, ready)
  return surfaces
}

const corsHeaders = (origin: string): Record<string, string> => ({
  'access-control-allow-origin': origin,
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers': 'Retry-After, X-Request-Id',
})

const preflightHeaders = {
  vary: 'Origin',
  'x-content-type-options': 'nosniff',
  'access-control-allow-methods': 'GET, HEAD, POST',
  'access-control-allow-headers': 'Content-Type, X-Request-Id, Last-Event-ID',
  'access-control-max-age': '600',
}
