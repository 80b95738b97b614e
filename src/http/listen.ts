import { type AddressInfo, Server as NetServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { StartError } from '../errors.ts'
import type { Service } from '../service.ts'
import { createNodeServer } from './node.ts'

export type Serving = {
  /** The base URL for clients, without a trailing slash. */
  url: string
  /** Makes readiness answer 503 from now on; resolves after `shutdown_delay_ms`. */
  leave(): Promise<void>
  /**
   * Stops accepting connections and resolves to true when all running requests are answered, or to false when
   * `limit` aborts first; the requests still running are then cut off.
   */
  drain(limit: AbortSignal): Promise<boolean>
}

/** Connections not yet accepted; the system may allow fewer. With a full queue every other client waits a second or more. */
const backlog = 4_096

/** Listens on the configured host and port. */
export async function serve({ app, handle, upgrade, leave, socketsClosed }: Service): Promise<Serving> {
  const { config } = app
  const { server, drain } = createNodeServer(handle, config, upgrade)
  let running = 0
  let idle: () => void = () => {}
  server.on('request', (_request, response) => {
    running += 1
    response.once('close', () => {
      running -= 1
      if (running === 0) idle()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(cannotListen(error, config)))
    server.listen(config.port, config.host, backlog, resolve)
  })
  return {
    url: urlOf(server.address() as AddressInfo),
    leave: async () => {
      leave('leaving')
      if (config.shutdown_delay_ms > 0) await delay(config.shutdown_delay_ms)
    },
    drain: async (limit) => {
      leave('draining')
      drain()
      const drained = new Promise<true>((resolve) => {
        idle = () => resolve(true)
        if (running === 0) idle()
      })
      // Not http.Server.close: it would cut idle connections, whose next request must get its 503.
      NetServer.prototype.close.call(server)
      const isClean = await Promise.race([drained, aborted(limit)])
      await socketsClosed(limit)
      server.closeAllConnections()
      return isClean && !limit.aborted
    },
  }
}

function urlOf({ address, family, port }: AddressInfo): string {
  if (['0.0.0.0', '::'].includes(address)) return `http://localhost:${port}`
  return family === 'IPv6' ? `http://[${address}]:${port}` : `http://${address}:${port}`
}

/** Resolves to false when `signal` aborts or has aborted. */
export const aborted = (signal: AbortSignal): Promise<false> =>
  new Promise((resolve) => {
    const end = () => resolve(false)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })

function cannotListen(
  error: NodeJS.ErrnoException,
  { host, port }: { host: string; port: number },
): StartError {
  const why =
    error.code === 'EADDRINUSE'
      ? 'something listens there already; stop it or set CELLKEEP_PORT'
      : error.code === 'EACCES'
        ? 'the system forbids it; choose a port above 1023 with CELLKEEP_PORT'
        : `the system answered ${error.code}; check CELLKEEP_HOST and CELLKEEP_PORT`
  return new StartError('cannot_listen', `Cannot listen on ${host}:${port}: ${why}.`, 1, { cause: error })
}
