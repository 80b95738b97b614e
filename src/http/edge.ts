import { randomUUID } from 'node:crypto'
import { isIPv4 } from 'node:net'
import type { AuditStreams } from '../audit-stream/audit-stream.ts'
import { readCarriers } from '../auth/caller.ts'
import { canonicalIp } from '../config/ip.ts'
import type { App } from '../core/app.ts'
import { asServiceError } from '../core/boundary.ts'
import { countAnswer } from '../core/tally.ts'
import { invalidRequest, refusal } from '../errors.ts'
import { since } from '../observe/observer.ts'
import { inWork, tenths } from '../observe/work.ts'
import { clientIp, compileTrustedProxies, type TrustedProxies } from './client-ip.ts'
import { type EdgeReply, type EdgeRequest, flatReply, refusalReply, unreadReply } from './exchange.ts'
import type { RequestInfo } from './jsonrpc.ts'
import { compileOrigins } from './origin.ts'
import { createSurfaces, type Surface } from './surfaces.ts'

const requestIdForm = /^[A-Za-z0-9._-]{1,128}$/

/** What every request passes before its surface, and every reply after it. */
export function createEdge(app: App, streams: AuditStreams) {
  const { config, tally } = app
  const isAllowed = compileOrigins(config.allowed_origins)
  const proxies = compileTrustedProxies(config.trusted_proxies)
  const surfaceOf = createSurfaces(app, streams)
  const addressOf = addressReader(app, proxies)

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
      // A client without an address is a flaw of the setup, unless it has reset its connection.
      const hasLeft = request.address === undefined && request.isGone()
      if (hasLeft) trace.reason = 'client_left'
      else ip = addressOf(request)
      const info = { carriers, ip, request_id, trace }
      reply = hasLeft
        ? unreadReply()
        : await inWork({ site: route, fields: trace }, () => answer(app, request, sent, info))
    } catch (error) {
      const { status, data } = await asServiceError(app, error, request_id)
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
        // One-time links have their token in the fragment, which some mail scanners send too, or send with `%23`.
        path: request.path.slice(0, 200).split(/#|%23/, 1)[0],
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

/** The checks, in the order of the numbers, and the surface. An error becomes the flat body of its reason. */
async function answer(
  { config, node }: App,
  request: EdgeRequest,
  sent: Sent,
  info: RequestInfo,
): Promise<EdgeReply> {
  // 1. draining
  if (node.phase === 'draining') throw refusal('shutting_down')

  // 2. a declared length over the limit; the body stays unread
  if (Number(request.header('content-length') ?? 0) > config.body_limit) throw refusal('payload_too_large')

  // 3. the origin
  const { surface } = sent
  const isGuarded = surface?.checksOrigin || info.carriers.cookie.state !== 'none'
  if (sent.origin !== undefined && !sent.isAllowed && isGuarded && !surface?.exempt) {
    info.trace.origin = sent.origin.slice(0, 100)
    throw refusal('forbidden_origin')
  }

  // 4. the path, then the verb
  if (!surface) throw refusal('not_found')
  const isPreflight = request.method === 'OPTIONS' && request.header('access-control-request-method')
  if (config.cors && sent.isAllowed && isPreflight)
    return { status: 204, headers: { ...preflightHeaders }, body: null }
  if (!surface.verbs.includes(request.method)) {
    info.trace.reason = 'method_not_allowed'
    return refusalReply('method_not_allowed', { allow: surface.verbs.join(', ') })
  }

  // 5. an idempotency key that would be ignored
  if (!surface.takesKey && !surface.exempt && request.header('idempotency-key') !== undefined)
    throw invalidRequest('idempotency_not_supported')

  // 6. the surface
  return await surface.handle(request, info)
}

/** Reads the client address of a request. Says once that a forwarded one is ignored. */
function addressReader({ log }: App, proxies: TrustedProxies): (request: EdgeRequest) => string {
  let warned = false
  const warnIgnored = (): void => {
    if (!warned)
      log.warn(
        { event: 'configuration' },
        'X-Forwarded-For is ignored: its sender is not in CELLKEEP_TRUSTED_PROXIES (option trusted_proxies)',
      )
    warned = true
  }

  return (request) => {
    const { address } = request
    const forwarded = request.header('x-forwarded-for')
    // An IPv4 address has one form only.
    if (forwarded === undefined && isIPv4(address ?? '')) return address as string
    return clientIp(address, forwarded, proxies, warnIgnored)
  }
}

type Handle = (request: EdgeRequest) => Promise<EdgeReply>

/** Counts an HTTP request that has been answered. */
function observeRequest(
  { observer, config }: App,
  answered: {
    request: EdgeRequest
    route: string
    status: number
    started: number
    reason: string | undefined
  },
): void {
  const { request, route, status, started, reason } = answered
  const outcome = request.isGone() ? 'cut' : `${Math.floor(status / 100)}xx`
  const method = verbOf(request)
  observer.count('http_requests_total', route, method, outcome)
  observer.observe('http_request_seconds', since(started), route, method, outcome)
  if (route === `${config.account_path}/login`) observer.count('login_attempts_total', reason ?? 'ok')
}

const verbOf = ({ method }: EdgeRequest): string => (method === 'GET' || method === 'POST' ? method : 'other')

/** Each request as the span of a server, if traces are on. */
function traced(
  { observer: { tracer } }: App,
  handle: Handle,
  of: { routeOf(path: string): string; isTrusted(request: EdgeRequest): boolean },
): Handle {
  if (!tracer) return handle
  return (request) => {
    const route = of.routeOf(request.path)
    const method = verbOf(request)
    const sent = { traceparent: request.header('traceparent'), isTrusted: of.isTrusted(request) }
    return tracer.server(`${method} ${route}`, sent, async (span) => {
      const reply = await handle(request)
      span.setAttribute('http.request.method', method)
      span.setAttribute('http.route', route)
      span.setAttribute('http.response.status_code', reply.status)
      return reply
    })
  }
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
