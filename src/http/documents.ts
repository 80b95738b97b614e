import type { App } from '../core/app.ts'
import { openApi } from '../discovery/openapi.ts'
import { openRpc } from '../discovery/openrpc.ts'
import { refusal } from '../errors.ts'
import { routeList } from '../routes.ts'
import type { Document } from '../wire/document.ts'
import { issue } from '../wire/issues.ts'
import { type EdgeReply, type EdgeRequest, jsonReply, matchesEtag } from './exchange.ts'
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
  const [unknown] = new URLSearchParams(query).keys()
  if (unknown !== undefined)
    throw refusal('invalid_query_params', { issues: [issue([unknown], 'unrecognized_keys')] })
  await app.limiters.takeIp('discovery', ip)
  const { text, etag } = make(app)
  const headers = { etag, 'cache-control': 'no-cache' }
  if (!matchesEtag(header('if-none-match'), etag)) return jsonReply(200, text, headers)
  return { ...jsonReply(304, '', headers), body: null }
}
