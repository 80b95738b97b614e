import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { createHistogram } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'
import type { LoadResult } from './load.ts'
import type { World } from './measure.ts'
import { numbering, type Workload } from './workloads.ts'
import { idOf } from './world.ts'

/** Workloads that are more than independent requests. They run in this process; only the server's cost counts. */
export function drivers({ cookies, bystanders, admin, visible }: World): Workload[] {
  const one = (name: string, connections: number, drive: NonNullable<Workload['drive']>): Workload => ({
    name,
    requests: [],
    connections,
    drive,
  })
  return [
    one('API token', 64, withTokens(cookies.slice(0, 16))),
    one('WebSocket round trip', 64, overSockets(cookies.slice(0, 64))),
    one('offer and accept', 16, async (port, seconds) =>
      repeated(16, seconds, async (_turn, lane) => {
        // A person of its own for each lane: a second offer of the role would replace the first.
        const cookie = bystanders[20 + lane] as string
        const at = cookies.length + 20 + lane
        const role = 'admin'
        const made = await call(port, admin, 'role_grant_offer_create', {
          to_account_id: idOf('account', at),
          role,
        })
        const done = await call(port, cookie, 'role_grant_offer_accept', { offer_id: made.offer.offer_id })
        await call(port, admin, 'role_grant_revoke', {
          actor_id: idOf('actor', at),
          role_grant_id: done.role_grant_id,
        })
      }),
    ),
    one('import per cell', 4, async (port, seconds) =>
      times(
        await repeated(4, seconds, (turn) => imported(port, cookies[turn % cookies.length] as string)),
        50,
      ),
    ),
    {
      ...one('audit stream per row', 1, (port, seconds) => streamed(port, admin, seconds)),
      first: numbering(admin),
    },
    one('batch of 50 over a socket', 1, async (port, seconds) => {
      const socket = await opened(port, cookies[0] as string)
      const result = await repeated(1, seconds, () =>
        Promise.all(
          visible.slice(0, 50).map((id, at) => ask(socket, { id: at, method: 'cell_get', params: { id } })),
        ),
      )
      socket.close()
      return result
    }),
  ]
}

/** Repeats `work` on this many lanes for a while. */
async function repeated(
  lanes: number,
  seconds: number,
  work: (turn: number, lane: number) => Promise<unknown>,
): Promise<LoadResult> {
  const latencies = createHistogram()
  const started = performance.now()
  const until = started + seconds * 1000
  let turn = 0
  await Promise.all(
    Array.from({ length: lanes }, async (_, lane) => {
      while (performance.now() < until) {
        const at = performance.now()
        await work(turn++, lane)
        latencies.record(Math.max(1, Math.round((performance.now() - at) * 1000)))
      }
    }),
  )
  const milliseconds = (percentile: number) => latencies.percentile(percentile) / 1000
  return {
    rate: latencies.count / ((performance.now() - started) / 1000),
    p50: milliseconds(50),
    p99: milliseconds(99),
    max: milliseconds(100),
    count: latencies.count,
    failed: 0,
  }
}

/** A result that counts the parts of each repetition. */
const times = (result: LoadResult, parts: number): LoadResult => ({
  ...result,
  rate: result.rate * parts,
  count: result.count * parts,
})

type Headers = Record<string, string>

async function post(port: number, headers: Headers, body: unknown): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${port}/api/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  return await response.json()
}

// biome-ignore lint/suspicious/noExplicitAny: results of any method.
async function call(port: number, cookie: string, method: string, params: object): Promise<any> {
  const answer = (await post(port, { cookie }, { jsonrpc: '2.0', id: 1, method, params })) as {
    result?: unknown
    error?: object
  }
  if (answer.error) throw new Error(`${method}: ${JSON.stringify(answer.error)}`)
  return answer.result
}

/** The same as `account_verify`, with tokens that are made for it. */
function withTokens(cookies: readonly string[]): NonNullable<Workload['drive']> {
  let tokens: string[] | undefined
  return async (port, seconds) => {
    tokens ??= await Promise.all(
      cookies.map(async (cookie) => {
        const lifetime = { kind: 'eternal' }
        const scope = { kind: 'full' }
        return (await call(port, cookie, 'account_token_create', { scope, lifetime })).token as string
      }),
    )
    const all = tokens
    return await repeated(64, seconds, (turn) =>
      post(
        port,
        { authorization: `Bearer ${all[turn % all.length]}` },
        { jsonrpc: '2.0', id: 1, method: 'account_verify' },
      ),
    )
  }
}

async function imported(port: number, cookie: string): Promise<void> {
  const params = { kind: 'import', data: { label: 'Imported', text: 'Some words to keep. '.repeat(10) } }
  const batch = Array.from({ length: 50 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'cell_create', params }))
  const answers = (await post(port, { cookie }, batch)) as { error?: object }[]
  for (const { error } of answers) if (error) throw new Error(JSON.stringify(error))
}

const waiting = new WeakMap<WebSocket, Map<number, () => void>>()

async function opened(port: number, cookie: string): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/api/ws`, { headers: { cookie } })
  const open = new Map<number, () => void>()
  waiting.set(socket, open)
  socket.on('message', (data) => {
    const { id } = JSON.parse(String(data)) as { id?: number }
    if (id === undefined) return
    open.get(id)?.()
    open.delete(id)
  })
  await once(socket, 'open')
  return socket
}

function ask(socket: WebSocket, message: { id: number; method: string; params?: object }): Promise<void> {
  return new Promise((resolve) => {
    waiting.get(socket)?.set(message.id, resolve)
    socket.send(JSON.stringify({ jsonrpc: '2.0', ...message }))
  })
}

function overSockets(cookies: readonly string[]): NonNullable<Workload['drive']> {
  return async (port, seconds) => {
    const sockets = await Promise.all(cookies.map((cookie) => opened(port, cookie)))
    const free = [...sockets]
    const result = await repeated(sockets.length, seconds, async (id) => {
      const socket = free.pop() as WebSocket
      await ask(socket, { id, method: 'account_verify' })
      free.push(socket)
    })
    for (const socket of sockets) socket.close()
    return result
  }
}

/** Reads the log from its beginning, for a while at most. */
async function streamed(port: number, cookie: string, seconds: number): Promise<LoadResult> {
  const started = performance.now()
  const path = '/api/account/audit/stream?after=0'
  const request = httpRequest({ port, host: '127.0.0.1', path, headers: { cookie } }).end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  if (response.statusCode !== 200) throw new Error(`The audit stream answered ${response.statusCode}.`)
  let count = 0
  let elapsed = 0
  response.on('data', (chunk: Buffer) => {
    count += String(chunk).split('\ndata:').length - 1
    elapsed = performance.now() - started
  })
  // Cut off by ourselves.
  request.on('error', () => {})
  response.on('error', () => {})
  await delay(seconds * 1000)
  request.destroy()
  const each = elapsed / count
  return { rate: (count / elapsed) * 1000, p50: each, p99: each, max: each, count, failed: 0 }
}
