import type { Server } from 'node:http'
import {
  type AddressInfo,
  createServer,
  type ListenOptions,
  Server as NetServer,
  type Socket,
} from 'node:net'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { httpUrl } from '../config/ip.ts'
import { StartError } from '../errors.ts'
import type { Service } from '../service.ts'
import { watchDescriptors } from './descriptors.ts'
import { createNodeServer } from './node.ts'

export type Serving = {
  /** The base URL for clients, without a trailing slash. */
  url: string
  /**
   * From now on readiness answers 503, and every other answer closes its connection. Resolves after
   * `shutdown_delay_ms`, once no connection is accepted any more and the last ones accepted have sent their requests.
   */
  leave(): Promise<void>
  /**
   * Stops accepting connections and resolves to true when all running requests are answered, or to false when
   * `limit` aborts first; the requests still running are then cut off.
   */
  drain(limit: AbortSignal): Promise<boolean>
}

/** Connections not yet accepted; the system may allow fewer. With a full queue, clients wait a second or more. */
const backlog = 4_096
/**
 * Sockets that listen on the same port. Node accepts one connection per socket in each event loop turn, so with a
 * single socket a flood of connections would make all other clients wait for seconds.
 */
const listening = 64

/** Listens on the configured host and port. */
export async function serve({ app, handle, upgrade, join, leave, socketsClosed }: Service): Promise<Serving> {
  const { config } = app
  const { server, ...told } = createNodeServer(handle, config, upgrade)
  /** Running requests by connection. Before Node 24, a lost connection closes only the first of its responses. */
  const running = new Map<Socket, number>()
  let idle: () => void = () => {}
  const keep = (socket: Socket, count: number): void => {
    if (count > 0) return void running.set(socket, count)
    running.delete(socket)
    if (running.size === 0) idle()
  }
  server.on('connection', (socket) => socket.once('close', () => keep(socket, 0)))
  server.on('request', ({ socket }, response) => {
    keep(socket, (running.get(socket) ?? 0) + 1)
    response.once('close', () => keep(socket, (running.get(socket) ?? 0) - 1))
  })
  const listeners = await listen(server, config)
  await join()
  const endWatch = watchDescriptors(app.log)
  return {
    url: urlOf(server.address() as AddressInfo),
    leave: async () => {
      leave('leaving')
      if (config.shutdown_delay_ms === 0) return
      told.leave()
      await delay(config.shutdown_delay_ms)
      await closeQuietly(listeners)
      await delay(Math.min(settleMs, config.shutdown_delay_ms))
    },
    drain: async (limit) => {
      leave('draining')
      told.drain()
      const drained = new Promise<true>((resolve) => {
        idle = () => resolve(true)
        if (running.size === 0) idle()
      })
      for (const listener of listeners.splice(0)) stopAccepting(listener)
      endWatch()
      const isClean = await Promise.race([drained, aborted(limit)])
      await socketsClosed(limit)
      server.closeAllConnections()
      return isClean && !limit.aborted
    },
  }
}

/** How long the request of the connection accepted last may take to arrive. */
const settleMs = 200
/** An event loop turn without work is shorter than this. */
const quietMs = 0.3
const turnsMax = 100

/**
 * The system resets connections that wait to be accepted when their listener closes, and a balancer that has sent a
 * mutation may not send it again. So each listener closes right after a turn that accepted all waiting connections and
 * did little else.
 */
async function closeQuietly(listeners: NetServer[]): Promise<void> {
  for (const listener of listeners.splice(0)) {
    for (let turn = 0; turn < turnsMax; turn++) {
      const began = performance.now()
      await nextTurn()
      if (performance.now() - began < quietMs) break
    }
    stopAccepting(listener)
  }
}

/**
 * Not http.Server.close: it would cut idle connections, whose next request must get its 503. Bun's server is not a
 * net.Server.
 */
const stopAccepting = (listener: NetServer): void => {
  const { close } = listener instanceof NetServer ? NetServer.prototype : (listener as NetServer)
  close.call(listener)
}

/** Resolves to all that listen; `server` is the first of them and serves the connections of all. */
async function listen(server: Server, { host, port }: { host: string; port: number }): Promise<NetServer[]> {
  const bind = (listener: NetServer, at: ListenOptions): Promise<NetServer> =>
    new Promise((resolve, reject) => {
      // The listener stays: a later error only means that one connection could not be accepted.
      listener.on('error', reject)
      listener.listen({ ...at, backlog }, () => resolve(listener))
    })
  try {
    // A shared port would also be shared with any other program that listens there, so check first that it is free.
    const alone = await bind(createServer(), { host, port })
    const { port: free } = alone.address() as AddressInfo
    await new Promise((resolve) => alone.close(resolve))
    const shared = { host, port: free, reusePort: true }
    try {
      await bind(server, shared)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOTSUP') throw error
      return [await bind(server, { host, port: free })]
    }
    const more = Array.from({ length: listening - 1 }, () => {
      const listener = createServer({ allowHalfOpen: true, noDelay: true })
      return bind(
        listener.on('connection', (socket) => server.emit('connection', socket)),
        shared,
      )
    })
    // If file descriptors run short, fewer listeners will do.
    const opened = await Promise.allSettled(more)
    return [server, ...opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))]
  } catch (error) {
    throw cannotListen(error as NodeJS.ErrnoException, { host, port })
  }
}

const urlOf = ({ address, port }: AddressInfo): string =>
  httpUrl(['0.0.0.0', '::'].includes(address) ? 'localhost' : address, port)

/** Resolves to false when `signal` aborts or has aborted. */
export const aborted = (signal: AbortSignal): Promise<false> =>
  new Promise((resolve) => {
    const end = () => resolve(false)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })

export function cannotListen(
  error: NodeJS.ErrnoException,
  { host, port }: { host: string; port: number },
  prefix = 'CELLKEEP_',
): StartError {
  // Only a refused port stays refused; the others may be there at the next try of a supervisor.
  const [why, exitCode] =
    error.code === 'EADDRINUSE'
      ? [`another process already listens there. Stop it, or set ${prefix}PORT to another port`, 1]
      : error.code === 'EACCES'
        ? [`the system does not allow it. Set ${prefix}PORT to a port above 1023`, 78]
        : [`the system answered ${error.code}. Check ${prefix}HOST and ${prefix}PORT`, 1]
  const message = `Cannot listen on ${host}:${port}: ${why}.`
  return new StartError('cannot_listen', message, exitCode, { cause: error })
}
