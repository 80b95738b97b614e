import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cpuOf } from './cpu.ts'
import { median, quantile, short, table } from './numbers.ts'
import { ask, helper, product, Started, temporary } from './processes.ts'
import { openReaders } from './socket-readers.ts'

/**
 * `npm run bench:fanout`: sockets of one account on one node, from a mutation to the last of them, against a bare
 * broadcast of the same bytes by `ws` in the same run. Both take turns, so that a noisy machine disturbs both;
 * each server is a process of its own, and so is what reads.
 */
const { values: flags } = parseArgs({
  options: {
    sockets: { type: 'string', default: '1000' },
    /** One after the other, each timed until every socket has it. */
    events: { type: 'string', default: '50' },
    /** By 12 writers at once. */
    burst: { type: 'string', default: '500' },
    rounds: { type: 'string', default: '3' },
  },
})
const [sockets, events, burst] = [Number(flags.sockets), Number(flags.events), Number(flags.burst)]

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
  const product = await cellkeep()
  const targets = [await bare(product.message), product]
  const found = new Map<string, Figures[]>()
  for (let round = 0; round < Number(flags.rounds); round++)
    for (const target of targets)
      found.set(target.name, [...(found.get(target.name) ?? []), await measure(target)])
  const middle = (name: string, of: keyof Figures) => median((found.get(name) ?? []).map((one) => one[of]))
  const columns = ['answer', 'p50', 'p99', 'rate', 'cpu'] as const
  const head = ['answer p50 ms', 'last socket p50 ms', 'p99 ms', 'deliveries/s', 'CPU µs each']
  const rows = targets.map(({ name }) => [name, ...columns.map((of) => short(middle(name, of)))])
  console.log(table([`${sockets} sockets`, ...head], rows))
  console.log(
    `deliveries: ${short(middle('cellkeep', 'rate') / middle('bare ws', 'rate'))} of bare ws; bar 0.5`,
  )
} finally {
  agent.destroy()
  await started.close()
}

async function measure(target: Target): Promise<Figures> {
  const readers = await openReaders(target, sockets)
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
  const cpu = ((cpuOf(target.pid).own - before) / (burst * sockets)) * 1e6
  await readers.close()
  return {
    answer: median(answers),
    p50: median(latencies),
    p99: quantile(latencies, 0.99),
    rate: (burst * sockets) / seconds,
    cpu,
  }
}

type Answer = { cookie: string; result: Record<string, unknown> }

async function post(port: number, path: string, body: string, cookie = ''): Promise<Answer> {
  const headers = { 'content-type': 'application/json', ...(cookie && { cookie }) }
  const sent = request({ port, path, method: 'POST', agent, headers })
  sent.end(body)
  const [response] = await once(sent, 'response')
  let text = ''
  for await (const chunk of response) text += chunk
  if (response.statusCode !== 200) throw new Error(`POST ${path} was answered ${response.statusCode} ${text}`)
  const set = String(response.headers['set-cookie']?.[0] ?? '').split(';', 1)[0] as string
  return { cookie: set, result: JSON.parse(text).result }
}

async function bare(message: string): Promise<Target> {
  const child = helper(started, 'socket-floor.ts')
  const port = await ask<number>(child)
  const publish = async () => void (await post(port, '/', message))
  return { name: 'bare ws', port, pid: child.pid as number, path: '/', cookie: '', publish }
}

/** The admin renews one offer again and again; the sockets are those of its recipient. */
async function cellkeep(): Promise<Target & { message: string }> {
  const dataDir = join(await temporary(started), 'data')
  const server = await product(started, dataDir, {
    CELLKEEP_WS_PER_ACCOUNT: '10000',
    CELLKEEP_LIMIT_ROLE_WRITE: 'off',
  })
  const account = (name: string, more: object, cookie?: string) =>
    post(
      server.port,
      `/api/account/${name}`,
      JSON.stringify({ password: 'a bench password', ...more }),
      cookie,
    )
  const call = (method: string, params: object, cookie: string) =>
    post(server.port, '/api/rpc', JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), cookie)
  const token = (await readFile(join(dataDir, 'bootstrap_token'), 'utf8')).trim()
  const admin = await account('bootstrap', { token, username: 'admin' })
  await call('app_settings_update', { open_signup: true }, admin.cookie)
  const reader = await account('signup', { username: 'reader' })
  const { result } = await call('account_verify', {}, reader.cookie)
  const offer = { to_account_id: result.id, role: 'admin', message: 'A role for you.' }
  const publish = async () => void (await call('role_grant_offer_create', offer, admin.cookie))
  const made = await call('role_grant_offer_create', offer, admin.cookie)
  const params = { offer: made.result.offer }
  const message = JSON.stringify({ jsonrpc: '2.0', method: 'role_grant_offer_received', params })
  return { name: 'cellkeep', ...server, path: '/api/ws', cookie: reader.cookie, publish, message }
}
