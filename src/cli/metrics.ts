import type { Config } from '../config/config.ts'
import { StartError } from '../errors.ts'
import { cannotListen } from '../http/listen.ts'
import { createServer } from '../http/node-http.ts'

/** A registry of `prom-client` with the metrics of the process. The package is loaded here, only if metrics are on. */
export async function openRegistry() {
  const { Registry, collectDefaultMetrics } = await loadPromClient()
  const register = new Registry()
  collectDefaultMetrics({ register })
  return register
}

async function loadPromClient() {
  try {
    return (await import('prom-client')).default
  } catch (error) {
    throw new StartError(
      'configuration',
      'CELLKEEP_METRICS_PORT needs the package prom-client, which is not installed. Run `npm install prom-client@15`.',
      78,
      { cause: error },
    )
  }
}

const connectionsMax = 32

/**
 * Serves `GET /metrics` on a port of its own, which clients of the service do not use. Resolves to a function that
 * stops it.
 */
export async function serveMetrics(
  registry: { metrics(): Promise<string>; readonly contentType: string },
  { metrics_host: host, metrics_port }: Pick<Config, 'metrics_host' | 'metrics_port'>,
): Promise<() => Promise<void>> {
  const port = metrics_port as number
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, async (request, response) => {
    const status = request.url !== '/metrics' ? 404 : request.method !== 'GET' ? 405 : 200
    const body = status === 200 ? await registry.metrics() : ''
    const type = status === 200 ? registry.contentType : 'text/plain'
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body)
  })
  server.maxConnections = connectionsMax
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(cannotListen(error, { host, port }, 'CELLKEEP_METRICS_')))
    server.listen(port, host, resolve)
  })
  return async () => {
    server.close()
    server.closeAllConnections()
  }
}
