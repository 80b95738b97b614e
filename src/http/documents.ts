import type { App } from '../core/app.ts'
import { openApi } from '../discovery/openapi.ts'
import { openRpc } from '../discovery/openrpc.ts'
import { routeList } from '../routes.ts'
import type { Document } from '../wire/document.ts'
import { type EdgeReply, type EdgeRequest, jsonReply, matchesEtag, refuseQuery } from './exchange.ts'
import type { RequestInfo } from './jsonrpc.ts'

/** The paths of the descriptions for machines. They share one limiter with `rpc.discover`. */
export const documentPaths: Readonly<Record<string, (app: App) => Document>> = {
  '/api/openrpc.json': openRpc,
  '/api/openapi.json': (app) => openApi(app, routeList),
}

export async function sendDocument(
  app: App,
  make: (app: App) => Document,
  { header, query }: EdgeRequest,
  { ip }: RequestInfo,
): Promise<EdgeReply> {
  refuseQuery(new URLSearchParams(query))
  await app.limiters.takeIp('discovery', ip)
  const { text, etag } = make(app)
  const headers = { etag, 'cache-control': 'no-cache' }
  if (!matchesEtag(header('if-none-match'), etag)) return jsonReply(200, text, headers)
  return { ...jsonReply(304, '', headers), body: null }
}
