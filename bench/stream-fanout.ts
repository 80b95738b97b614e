import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cpuOf } from './cpu.ts'
import { median, quantile, short, table } from './numbers.ts'
import { ask, helper, product, Started, temporary } from './processes.ts'

/**
 * `node bench/stream-fanout.ts`: audit streams of one node, from a mutation to the last of its readers, against
 * a bare broadcast of the same bytes in the same run. Both take turns, so that a noisy machine disturbs both.
 */
const { values: flags } = parseArgs({
  options: {
    streams: { type: 'string', default: '1000' },
    /** One after the other, each timed until every stream has it. */
    events: { type: 'string', default: '50' },
    /** By 12 writers at once. */
    burst: { type: 'string', default: '500' },
    rounds: { type: 'string', default: '3' },
  },
})
const [streams, events, burst] = [Number(flags.streams), Number(flags.events), Number(flags.burst)]

type Target = {
  name: string
  port: number
  pid: number
  path: string
  cookie: string
  publish(): Promise<void>
}
type Figures = { answer: number; p50: number; p99: number; rate: number; cpu: number }

const agent = new Agent({ keepAlive: true, maxSockets: 12 })
const started = new Started()
try {
  const targets = [await bare(), await cellkeep()]
  const found = new Map<string, Figures[]>()
  for (let round = 0; round < Number(flags.rounds); round++)
    for (const target of targets)
      found.set(target.name, [...(found.get(target.name) ?? []), await measure(target)])
  const head = [
    `${streams} streams`,
    'answer p50 ms',
    'last reader p50 ms',
    'p99 ms',
    'deliveries/s',
    'CPU µs each',
  ]
  console.log(
    table(
      head,
      targets.map(({ name }) => {
        const rounds = found.get(name) ?? []
        const middle = (of: keyof Figures) => short(median(rounds.map((one) => one[of])))
        return [name, middle('answer'), middle('p50'), middle('p99'), middle('rate'), middle('cpu')]
      }),
    ),
  )
} finally {
  agent.destroy()
  await started.close()
}

async function measure(target: Target): Promise<Figures> {
  const readers = await open(target)
  const answers: number[] = []
  const latencies: number[] = []
  for (let nth = 1; nth <= events; nth++) {
    const began = performance.now()
    await Promise.all([
      target.publish().then(() => answers.push(performance.now() - began)),
      readers.have(nth).then(() => latencies.push(performance.now() - began)),
    ])
  }
  const before = cpuOf(target.pid).own
  const began = performance.now()
  let left = burst
  const writer = async (): Promise<void> => {
    while (left-- > 0) await target.publish()
  }
  await Promise.all([...Array.from({ length: 12 }, writer), readers.have(events + burst)])
  const seconds = (performance.now() - began) / 1000
  const cpu = (cpuOf(target.pid).own - before) / (burst * streams)
  await readers.close()
  return {
    answer: median(answers),
    p50: median(latencies),
    p99: quantile(latencies, 0.99),
    rate: (burst * streams) / seconds,
    cpu: cpu * 1e6,
  }
}

/** Bare sockets that count blank lines, so that reading costs next to nothing beside what is measured. */
async function open({ port, path, cookie }: Target) {
  const lineFeed = 10
  const sockets: Socket[] = []
  let wanted = 0
  let behind = 0
  let reached = (): void => {}
  const readers: { count: number }[] = []
  await Promise.all(
    Array.from({ length: streams }, async () => {
      const socket = connect({ port, host: '127.0.0.1' })
      sockets.push(socket)
      // The opening is a block too.
      const reader = { count: -1 }
      readers.push(reader)
      let last = 0
      const opened = Promise.withResolvers<void>()
      socket.on('data', (chunk: Buffer) => {
        for (const byte of chunk) {
          if (byte === lineFeed && last === lineFeed) {
            reader.count += 1
            if (reader.count === 0) opened.resolve()
            else if (reader.count === wanted && --behind === 0) reached()
          }
          last = byte
        }
      })
      socket.on('close', () => opened.reject(new Error('a stream was closed')))
      socket.write(`GET ${path} HTTP/1.1\r\nHost: bench\r\nCookie: ${cookie}\r\n\r\n`)
      await opened.promise
    }),
  )
  return {
    /** Resolves when every stream has so many events. */
    have: (count: number): Promise<void> =>
      new Promise((resolve) => {
        wanted = count
        behind = readers.filter((one) => one.count < count).length
        reached = resolve
        if (behind === 0) resolve()
      }),
    close: async () => {
      const closed = sockets.map((socket) => once(socket, 'close'))
      for (const socket of sockets) socket.destroy()
      await Promise.all(closed)
    },
  }
}

async function post(port: number, path: string, body: string, headers: Record<string, string> = {}) {
  const sent = request({
    port,
    path,
    method: 'POST',
    agent,
    headers: { 'content-type': 'application/json', ...headers },
  })
  sent.end(body)
  const [response] = await once(sent, 'response')
  response.resume()
  await once(response, 'end')
  if (response.statusCode !== 200) throw new Error(`POST ${path} was answered ${response.statusCode}`)
  return response
}

async function bare(): Promise<Target> {
  const child = helper(started, 'stream-floor.ts')
  const port = await ask<number>(child)
  const id = '00000000-0000-4000-8000-000000000000'
  const row = `{"id":"${id}","seq":1000,"event_type":"cell_create","outcome":"success","actor_id":"${id}","account_id":"${id}","target_account_id":null,"target_actor_id":null,"ip":"127.0.0.1","created_at":"2026-01-01T00:00:00.000Z","metadata":{"cell_id":"${id}"}}`
  const block = `id: 1000\ndata: {"method":"cell_create","params":${row}}\n\n`
  const publish = async () => void (await post(port, '/', block))
  return { name: 'bare broadcast', port, pid: child.pid as number, path: '/', cookie: '', publish }
}

async function cellkeep(): Promise<Target> {
  const dataDir = join(await temporary(started), 'data')
  const server = await product(started, dataDir, {
    CELLKEEP_SSE_PER_CREDENTIAL: '1000',
    CELLKEEP_LIMIT_CELL_CREATE: 'off',
  })
  const token = (await readFile(join(dataDir, 'bootstrap_token'), 'utf8')).trim()
  const account = { token, username: 'bench', password: 'a bench password' }
  const reply = await post(server.port, '/api/account/bootstrap', JSON.stringify(account))
  const cookie = String(reply.headers['set-cookie'][0]).split(';')[0] as string
  const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'cell_create', params: { data: {} } })
  const publish = async () => void (await post(server.port, '/api/rpc', call, { cookie }))
  return { name: 'cellkeep', ...server, path: '/api/account/audit/stream', cookie, publish }
}
