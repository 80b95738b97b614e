import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Avoids the ports that the system picks (32768 and above): while the server is down, a connection to such a port may
 * get that port as its own, connect to itself, and keep the server from listening again.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}
