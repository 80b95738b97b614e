import type { App } from '../core/app.ts'
import { type EdgeReply, type EdgeRequest, jsonReply } from './exchange.ts'

/** Whether a browser asks for a page, rather than a program. */
export const wantsPage = ({ header }: EdgeRequest): boolean => /\btext\/html\b/.test(header('accept') ?? '')

/** `/` for programs: names the service and its paths. */
export async function home({ config, bootstrap }: App): Promise<EdgeReply> {
  const bootstrap_available = (await bootstrap.availability()) === true
  const paths = {
    rpc: config.rpc_path,
    account: config.account_path,
    ...(config.ws && { ws: config.ws_path }),
    ...(config.audit_stream && { audit_stream: config.audit_stream_path }),
    health: '/health',
    ready: '/ready',
  }
  return jsonReply(200, JSON.stringify({ service: 'cellkeep', bootstrap_available, paths }), {
    vary: 'Accept',
    'cache-control': 'no-cache',
  })
}
