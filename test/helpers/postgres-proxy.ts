import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import pg from 'pg'
import type { Connection } from '../../src/db/servers/connection.ts'

/** A proxy in front of a database; `wire` passes on, or holds back, what the two ends of each connection send. */
export async function postgresProxy(
  database: Connection,
  wire: (near: Socket, far: Socket) => void,
): Promise<{ connection: Connection; close(): Promise<void> }> {
  const { host, port, user, database: name, password } = new pg.Client(database)
  const server = createServer((near) => {
    const far = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host)
    wire(near, far)
    near.on('close', () => far.destroy()).on('error', () => {})
    far.on('close', () => near.destroy()).on('error', () => {})
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    connection: {
      host: '127.0.0.1',
      port: (server.address() as AddressInfo).port,
      user: user ?? '',
      database: name ?? '',
      ...(typeof password === 'string' && { password }),
    },
    close: async () => {
      server.close()
      await once(server, 'close')
    },
  }
}

/** After this long without an answer, a client has sent all that it will send. */
const holdMs = 30

/**
 * For `postgresProxy`: tells each connection's function of what the client sends, and whether a new round trip begins
 * with it. All messages that are sent before an answer make one.
 */
export const byRoundTrips =
  (onConnection: () => (sent: Buffer, isNew: boolean) => void) =>
  (near: Socket, far: Socket): void => {
    const onSent = onConnection()
    let hasAnswered = true
    near.on('data', (sent: Buffer) => {
      onSent(sent, hasAnswered)
      hasAnswered = false
      far.write(sent)
    })
    far.on('data', (answer) =>
      setTimeout(() => {
        hasAnswered = true
        near.write(answer)
      }, holdMs),
    )
  }
