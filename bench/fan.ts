import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cpuOf } from './cpu.ts'
import { median, quantile, short, table } from './numbers.ts'
import { Started } from './processes.ts'
import type { Readers } from './readers.ts'

/** A server that sends something to its readers, and how to trigger that. */
export type Target = {
  name: string
  port: number
  pid: number
  path: string
  cookie: string
  publish(): Promise<void>
}
export type Figures = { answer: number; p50: number; p99: number; rate: number; cpu: number }

type Fan = {
  /** What one reader is called; the plural is the flag for their number. */
  reader: 'socket' | 'stream'
  targets(started: Started): Promise<Target[]>
  open(target: Target, count: number): Promise<Readers>
}

/** How many connections the writers use. */
const writers = 12
const agent = new Agent({ keepAlive: true, maxSockets: writers })

/**
 * Measures the time from a mutation to the last of its readers, for cellkeep and for a bare broadcast of the same
 * bytes. The two alternate, so that a noisy machine disturbs both; each server is a process of its own. Prints the
 * table and resolves to the median round of each target.
 */
export async function fanOut({ reader, targets, open }: Fan): Promise<Map<string, Figures>> {
  const size = sizeFrom(`${reader}s`)
  const started = new Started()
  try {
    const all = await targets(started)
    const rounds = all.map((): Figures[] => [])
    for (let round = 0; round < size.rounds; round++)
      for (const [at, target] of all.entries())
        rounds[at]?.push(await measure(target, await open(target, size.readers), size))
    const found = new Map(all.map(({ name }, at) => [name, middle(rounds[at] ?? [])]))
    const head = ['answer p50 ms', `last ${reader} p50 ms`, 'p99 ms', 'deliveries/s', 'CPU µs each']
    const rows = [...found].map(([name, one]) => [
      name,
      ...[one.answer, one.p50, one.p99, one.rate, one.cpu].map(short),
    ])
    console.log(table([`${size.readers} ${reader}s`, ...head], rows))
    return found
  } finally {
    agent.destroy()
    await started.close()
  }
}

type Size = { readers: number; events: number; burst: number; rounds: number }

function sizeFrom(readers: string): Size {
  const flag = (value: string) => ({ type: 'string', default: value }) as const
  const { values } = parseArgs({
    options: {
      [readers]: flag('1000'),
      /** Sequentially, each timed until every reader has it. */
      events: flag('50'),
      /** By all writers concurrently. */
      burst: flag('500'),
      rounds: flag('3'),
    },
  })
  const [events, burst, rounds] = [Number(values.events), Number(values.burst), Number(values.rounds)]
  return { readers: Number(values[readers]), events, burst, rounds }
}

async function measure(target: Target, readers: Readers, size: Size): Promise<Figures> {
  const { events, burst } = size
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
  await Promise.all([...Array.from({ length: writers }, writer), readers.have(events + burst)])
  const seconds = (performance.now() - began) / 1000
  const cpu = ((cpuOf(target.pid).own - before) / (burst * size.readers)) * 1e6
  await readers.close()
  return {
    answer: median(answers),
    p50: median(latencies),
    p99: quantile(latencies, 0.99),
    rate: (burst * size.readers) / seconds,
    cpu,
  }
}

function middle(rounds: Figures[]): Figures {
  const of = (key: keyof Figures): number => median(rounds.map((one) => one[key]))
  return { answer: of('answer'), p50: of('p50'), p99: of('p99'), rate: of('rate'), cpu: of('cpu') }
}

export type Answer = { cookie: string; result: Record<string, unknown> }

export async function post(port: number, path: string, body: string, cookie = ''): Promise<Answer> {
  const headers = { 'content-type': 'application/json', ...(cookie && { cookie }) }
  const sent = request({ port, path, method: 'POST', agent, headers })
  sent.end(body)
  const [response] = await once(sent, 'response')
  let text = ''
  for await (const chunk of response) text += chunk
  if (response.statusCode !== 200) throw new Error(`POST ${path} returned ${response.statusCode} ${text}`)
  const set = String(response.headers['set-cookie']?.[0] ?? '').split(';', 1)[0] as string
  return { cookie: set, result: JSON.parse(text).result }
}

/** An RPC call as a client sends it. */
export const rpc = (method: string, params: object): string =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })

/** Calls an account route with the password of the bench. */
export const account = (port: number, name: string, more: object): Promise<Answer> =>
  post(port, `/api/account/${name}`, JSON.stringify({ password: 'a bench password', ...more }))

/** Creates the first account, an admin. */
export async function bootstrap(port: number, dataDir: string): Promise<Answer> {
  const token = (await readFile(join(dataDir, 'bootstrap_token'), 'utf8')).trim()
  return await account(port, 'bootstrap', { token, username: 'admin' })
}
