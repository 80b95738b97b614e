import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { bootstrap, fanOut, post, rpc, type Target } from './fan.ts'
import { ask, helper, product, type Started, temporary } from './processes.ts'
import { countingReaders, type Readers } from './readers.ts'

/**
 * `node bench/stream-fanout.ts`: the time from a mutation to the last of many audit streams of one node, compared
 * with a bare broadcast.
 */
await fanOut({
  reader: 'stream',
  targets: async (started) => [await bare(started), await cellkeep(started)],
  open,
})

/** Bare sockets that only count blank lines, so that reading costs little CPU. */
async function open({ port, path, cookie }: Target, count: number): Promise<Readers> {
  const lineFeed = 10
  const sockets: Socket[] = []
  const readers = countingReaders(sockets, count)
  await Promise.all(
    Array.from({ length: count }, async (_, nth) => {
      const socket = connect({ port, host: '127.0.0.1' })
      sockets.push(socket)
      let last = 0
      let isOpen = false
      const opened = Promise.withResolvers<void>()
      socket.on('data', (chunk: Buffer) => {
        for (const byte of chunk) {
          if (byte === lineFeed && last === lineFeed) {
            if (isOpen) readers.took(nth)
            // The opening comment is a block too.
            isOpen = true
            opened.resolve()
          }
          last = byte
        }
      })
      socket.on('close', () => opened.reject(new Error('a stream was closed')))
      socket.write(`GET ${path} HTTP/1.1\r\nHost: bench\r\nCookie: ${cookie}\r\n\r\n`)
      await opened.promise
    }),
  )
  return readers
}

async function bare(started: Started): Promise<Target> {
  const child = helper(started, 'stream-floor.ts')
  const port = await ask<number>(child)
  const id = '00000000-0000-4000-8000-000000000000'
  const row = `{"id":"${id}","seq":1000,"event_type":"cell_create","outcome":"success","actor_id":"${id}","account_id":"${id}","target_account_id":null,"target_actor_id":null,"ip":"127.0.0.1","created_at":"2026-01-01T00:00:00.000Z","metadata":{"cell_id":"${id}"}}`
  const block = `id: 1000\ndata: {"method":"cell_create","params":${row}}\n\n`
  const publish = async () => void (await post(port, '/', block))
  return { name: 'bare broadcast', port, pid: child.pid as number, path: '/', cookie: '', publish }
}

async function cellkeep(started: Started): Promise<Target> {
  const dataDir = join(await temporary(started), 'data')
  const server = await product(started, dataDir, {
    CELLKEEP_SSE_PER_CREDENTIAL: '1000',
    CELLKEEP_LIMIT_CELL_CREATE: 'off',
  })
  const { cookie } = await bootstrap(server.port, dataDir)
  const call = rpc('cell_create', { data: {} })
  const publish = async () => void (await post(server.port, '/api/rpc', call, cookie))
  return { name: 'cellkeep', ...server, path: '/api/account/audit/stream', cookie, publish }
}
