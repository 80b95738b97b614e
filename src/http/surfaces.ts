import type { AuditStreams } from '../audit-stream/audit-stream.ts'
import type { App } from '../core/app.ts'
import type { ReadyState } from '../db/servers/ready.ts'
import { refusal, StartError } from '../errors.ts'
import { logWarnings } from '../log/log.ts'
import { routeList } from '../routes.ts'
import { admitUpgrade } from '../websocket/upgrade.ts'
import { documentPaths, sendDocument } from './documents.ts'
import { type EdgeReply, type EdgeRequest, jsonReply, readJsonText, refusalReply } from './exchange.ts'
import { home, wantsPage } from './home.ts'
import { type RequestInfo, rpcGet, rpcPost } from './jsonrpc.ts'
import { runRoute } from './rest.ts'
import { createSite } from './site.ts'

/** What the service answers at a path. */
export type Surface = {
  /** The name of its path in metrics and traces. */
  route: string
  verbs: readonly string[]
  /** True: the `Origin` header is checked even without a session cookie. */
  checksOrigin?: boolean
  /** True: a request may have an `Idempotency-Key`. */
  takesKey?: boolean
  /** True, for health paths and pages: origin and idempotency key are not checked, and no cookie is cleared. */
  exempt?: boolean
  handle(request: EdgeRequest, info: RequestInfo): Promise<EdgeReply>
}

/** Finds the surface of a raw path, which is never decoded. */
export function createSurfaces(app: App, streams: AuditStreams): (path: string) => Surface | undefined {
  const surfaces = surfaceTable(app, streams)
  const site = createSite(app)
  const pages: Surface = {
    route: 'pages',
    verbs: ['GET', 'HEAD'],
    exempt: true,
    handle: (request) => (request.path === '/' && !wantsPage(request) ? home(app) : site.answer(request)),
  }
  return (path) => surfaces.get(path) ?? (site.answers(path) ? pages : undefined)
}

function surfaceTable(app: App, streams: AuditStreams): Map<string, Surface> {
  const { config, node, readiness } = app
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
      if (node.phase !== 'serving') return refusalReply('shutting_down')
      if (node.isDrained) return refusalReply('draining')
      return answer(await ask())
    })
  const ready = unlessLeaving(readiness.check, (state) => {
    if (!state.ready) return refusalReply(state.reason)
    const warnings = [...app.bootstrap.warnings(), ...logWarnings(), ...app.warnings]
    return jsonReply(200, JSON.stringify({ ready: true, ...(warnings.length > 0 && { warnings }) }))
  })
  const serving = unlessLeaving(readiness.recent, (state) => {
    if (state.ready) return alive()
    // If the database is down, a balancer would otherwise take out every node and cut all connections.
    const isOurs = state.reason !== 'schema_drift' && state.reason !== 'db_other_database'
    const mayReturn = isOurs && state.sinceMs < config.serving_grace_s * 1000
    return mayReturn ? alive() : refusalReply(state.reason)
  })
  for (const path of ['/health', '/health/live']) mount(path, live)
  mount('/health/serving', serving)
  for (const path of ['/ready', '/health/ready']) mount(path, ready)
  return surfaces
}

/** Whether the sender has a valid credential; an invalid one is refused. */
async function isKnown(app: App, { carriers, ip }: RequestInfo): Promise<boolean> {
  const { cookie, bearer, daemon } = carriers
  if (cookie.state !== 'good' && bearer === undefined && daemon === undefined) return false
  if (await app.callers.read({ carriers, withActors: false, ip })) return true
  throw refusal('authentication_required')
}
