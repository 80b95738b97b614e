import type { App } from '../core/app.ts'
import { since } from '../observe/observer.ts'
import type { EdgeReply, EdgeRequest } from './exchange.ts'

type Handle = (request: EdgeRequest) => Promise<EdgeReply>

/** Counts an HTTP request that has been answered. */
export function observeRequest(
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
export function traced(
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
