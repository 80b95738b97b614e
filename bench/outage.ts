import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { defaultHashing } from './hashing.ts'
import { machineLine } from './machine.ts'
import { prepare } from './measure.ts'
import { quantile, short, table } from './numbers.ts'
import { Started } from './processes.ts'
import { rpc } from './workloads.ts'

/**
 * `npm run bench:outage`: how fast a node refuses calls while no database is there, how it looks for one meanwhile, and
 * what happens when it is back and `--calls` calls come in the same moment.
 */
const { values: flags } = parseArgs({ options: { calls: { type: 'string', default: '2000' } } })
const calls = Number(flags.calls)
const poolMax = 10
/** Callers who never pause between two calls would measure each other. */
const pauseMs = 20
const callers = 10
const metricsPort = 49465

const started = new Started()
try {
  const { world, socket, client, facts, beside } = await prepare(started, {
    cells: 2000,
    sessions: 200,
    hashing: defaultHashing(),
  })
  const door = await openDoor(`${socket}/.s.PGSQL.5432`)
  const { port, logFile } = await beside({
    CELLKEEP_METRICS_PORT: String(metricsPort),
    CELLKEEP_DATABASE_URL: `postgres://${client.user}@127.0.0.1:${door.port}/cellkeep`,
    CELLKEEP_DATABASE_POOL_MAX: String(poolMax),
  })
  const requests = world.own.map(({ cookie, id }) => Buffer.from(rpc('cell_get', cookie, { id })))
  const seen: Answer[] = []
  let isOver = false
  const steady = Array.from({ length: callers }, async (_, nth) => {
    const one = await caller(port)
    for (let n = nth; !isOver; n++) {
      seen.push(await one.ask(requests[n % requests.length] as Buffer))
      await delay(pauseMs * (0.5 + Math.random()))
    }
    one.end()
  })
  const during = async (ms: number): Promise<Answer[]> => {
    const from = performance.now()
    await delay(ms)
    return seen.filter(({ at }) => at >= from)
  }
  /** The server's own time for those calls, in ms: from reading the request to its answer. */
  const ownDuring = async (ms: number): Promise<{ answers: Answer[]; own: number[]; delayMs: number }> => {
    const from = statSync(logFile).size
    const answers = await during(ms)
    const lines = readFileSync(logFile).subarray(from).toString().split('\n')
    const own = lines.flatMap((line) => /"duration_ms":([\d.]+)/.exec(line)?.slice(1).map(Number) ?? [])
    const page = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
    const [, delay] = /event_loop_delay_seconds\{quantile="0.99"\} (\S+)/.exec(page) ?? []
    return { answers, own, delayMs: 1000 * Number(delay) }
  }
  const until = async (isTrue: (last: Answer) => boolean): Promise<void> => {
    while (!isTrue(seen.at(-1) as Answer)) await delay(1)
  }

  await during(2_000)
  const calm = await during(5_000)
  // Silent: each attempt to connect takes as long as it may, so that two at once would be seen.
  door.set('silent')
  await until(({ status, ms, at }) => status === 503 && ms < 100 && at > performance.now() - 100)
  door.attempts.length = 0
  const away = await ownDuring(20_000)
  const silent = [...door.attempts]
  door.set('shut')
  await delay(3_000)
  door.attempts.length = 0
  const shut = await ownDuring(10_000)
  const refused = [...door.attempts]
  door.attempts.length = 0
  // Connected late, because servers close connections without a request.
  const crowd = await Promise.all(Array.from({ length: calls }, () => caller(port)))
  door.set('open')
  await until(({ status }) => status === 200)
  const back = performance.now()
  const burst = await Promise.all(crowd.map((one, n) => one.ask(requests[n % requests.length] as Buffer)))
  const burstMs = performance.now() - back
  await delay(Math.max(0, 6_000 - burstMs))
  isOver = true
  await Promise.all(steady)
  for (const one of crowd) one.end()

  const p99 = (answers: Answer[]): number =>
    quantile(
      answers.map(({ ms }) => ms),
      0.99,
    )
  const after = (from: number, to: number): Answer[] =>
    seen.filter(({ at }) => at >= back + from && at < back + to)
  const ofPool = refused.filter(({ who }) => who === 'cellkeep')
  const gaps = ofPool.slice(1).map(({ at }, n) => at - (ofPool[n]?.at ?? 0))
  const opened = door.attempts.filter(({ at }) => at <= back + burstMs)
  const lines: [string, string][] = [
    [
      '`cell_get` before, p50 and p99',
      `${short(
        quantile(
          calm.map(({ ms }) => ms),
          0.5,
        ),
      )} and ${short(p99(calm))} ms`,
    ],
    ...(
      [
        ['silent', away],
        ['refusing', shut],
      ] as const
    ).flatMap(([how, { answers, own, delayMs }]): [string, string][] => [
      [
        `answers while the database is ${how}: all 503, p50 and p99`,
        `${answers.every(({ status }) => status === 503) ? 'yes' : 'NO'}, ${short(
          quantile(
            answers.map(({ ms }) => ms),
            0.5,
          ),
        )} and ${short(p99(answers))} ms of ${answers.length}`,
      ],
      [
        'in the server alone, p50, p99 and most; delay of its event loop, p99',
        `${[0.5, 0.99, 1].map((share) => short(quantile(own, share))).join(', ')} ms; ${short(delayMs)} ms`,
      ],
    ]),
    ['connections that wait for a silent database at once, by who asks', most(silent)],
    [
      'pause between two that a refusing one gets, least and most',
      `${short(Math.min(...gaps))} and ${short(Math.max(...gaps))} ms`,
    ],
    [
      `${calls} calls as soon as it is back: answered, within`,
      `${burst.filter(({ status }) => status === 200).length}, ${short(burstMs)} ms`,
    ],
    ['connections opened until then, at once at most', `${opened.length}, ${most(opened)}`],
    ...[0, 1_000, 2_000, 3_000].map((from): [string, string] => [
      `p99 of \`cell_get\` from second ${from / 1000} after it is back`,
      `${short(p99(after(from, from + 1_000)))} ms`,
    ]),
  ]
  console.log(
    [`# A node without its database`, table(['What', 'measured'], lines), machineLine(facts)].join('\n\n'),
  )
} finally {
  await started.close()
}

type Answer = { at: number; ms: number; status: number }

/** One keep-alive connection, without a client's own work. */
async function caller(port: number) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  const ask = async (request: Buffer): Promise<Answer> => {
    const at = performance.now()
    socket.write(request)
    let text = ''
    for (;;) {
      const [chunk] = (await once(socket, 'data')) as [Buffer]
      text += chunk.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      const [, length] = /\r\ncontent-length: (\d+)/i.exec(text) ?? []
      if (end >= 0 && text.length >= end + 4 + Number(length))
        return { at, ms: performance.now() - at, status: Number(text.slice(9, 12)) }
    }
  }
  return { ask, end: () => void socket.destroy() }
}

type Attempt = { at: number; until: number; who: string }

/** The way to the database: open, shut, or nobody answers. Writes down who asks, and until the question is settled. */
async function openDoor(path: string) {
  let way: 'open' | 'shut' | 'silent' = 'open'
  const attempts: Attempt[] = []
  const all = new Set<Socket>()
  const server = createServer((near) => {
    const attempt: Attempt = { at: performance.now(), until: Number.POSITIVE_INFINITY, who: '?' }
    const settled = () => {
      attempt.until = Math.min(attempt.until, performance.now())
    }
    all.add(near)
    near
      .on('error', () => {})
      .on('close', () => {
        all.delete(near)
        settled()
      })
      .once('data', (chunk: Buffer) => {
        attempt.who = /application_name\0([^\0]*)/.exec(chunk.toString('latin1'))?.[1] ?? '?'
        attempts.push(attempt)
        if (way === 'shut') near.destroy()
        if (way !== 'open') return
        const far = connect(path)
        far.write(chunk)
        near.pipe(far).pipe(near)
        far.on('error', () => near.destroy()).on('close', () => near.destroy())
        near.on('close', () => far.destroy())
        // Logged in, and then answered what a new connection is asked.
        far.once('data', () => far.once('data', settled))
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  started.add(async () => void server.close())
  return {
    port: (server.address() as AddressInfo).port,
    attempts,
    set: (to: typeof way): void => {
      way = to
      if (to !== 'open') for (const one of all) one.destroy()
    },
  }
}

/** The max number of simultaneous attempts of each name. */
function most(attempts: Attempt[]): string {
  return [...new Set(attempts.map(({ who }) => who))]
    .sort()
    .map((who) => {
      const own = attempts.filter((one) => one.who === who)
      const atOnce = own.map(({ at }) => own.filter((one) => one.at <= at && at < one.until).length)
      return `${who} ${Math.max(...atOnce)}`
    })
    .join(', ')
}
