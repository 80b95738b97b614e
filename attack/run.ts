/**
 * `npm run attack [--slack N] [seconds] [number…]`: starts a server as its users do, with a heap of 512 MiB, and runs
 * the first four attacks at once from another process, then the two that once stopped its event loop each alone; or
 * those numbered. Fails if its memory exceeds 400 MiB, if `/health/live` takes longer than 250 ms on the connection that
 * a proxy keeps or on a new one, if one of the two keeps the event loop busy for 100 ms, or if the server does not serve
 * and stop normally afterwards. `--slack` allows N times as long, for machines whose processor others use too.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { bootstrap, type ServerProcess, startServer, workspace } from '../test/helpers/server-process.ts'

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { slack: { type: 'string', default: '1' } },
})
const [seconds = '25', ...only] = positionals
const slack = Number(values.slack)
const max = { memory: 400, health: 250 * slack, stall: 100 * slack }
/** Seconds and attacks of each round; `isAlone`: nothing else may take the server's time. */
const rounds =
  only.length > 0
    ? [{ seconds, chosen: only, isAlone: false }]
    : [
        { seconds, chosen: ['1', '2', '3', '4'], isAlone: false },
        { seconds: '10', chosen: ['3'], isAlone: true },
        { seconds: '5', chosen: ['5'], isAlone: true },
      ]

const space = await workspace(tmpdir())
try {
  const cwd = await space.make('attack')
  const stalls = join(cwd, 'stalls')
  const server = await startServer(cwd, {
    // As SECURITY.md recommends for a heap of this size.
    NODE_OPTIONS: `--max-old-space-size=512 --max-semi-space-size=4 --import=${new URL('stalls.ts', import.meta.url)}`,
    MALLOC_ARENA_MAX: '2',
    MALLOC_MMAP_THRESHOLD_: '131072',
    MALLOC_TRIM_THRESHOLD_: '131072',
    ATTACK_STALLS: stalls,
    // This process reads the log; a line for every request would slow down the measuring.
    CELLKEEP_LOG_LEVEL: 'warn',
  })
  await bootstrap(server)
  await publish(server)
  await warmUp(server)
  const failures: string[] = []
  for (const round of rounds) failures.push(...(await attack(server, round, stalls)))
  failures.push(...(await afterwards(server)))
  for (const failure of failures) console.error(failure)
  console.log(`${failures.length === 0 ? 'passed' : 'FAILED'}`)
  if (failures.length > 0) process.exitCode = 1
} finally {
  await space.remove()
}

/** Creates public cells that fill a page of a list up to its max bytes. */
async function publish({ client }: ServerProcess): Promise<void> {
  for (let index = 0; index < 45; index++)
    await client.cell_create({ visibility: 'public', data: { text: 'x'.repeat(200_000), index } })
}

/** Lets the JIT compile the hot code first, as in a server that has been running for a while. */
async function warmUp({ client, url }: ServerProcess): Promise<void> {
  for (let round = 0; round < 200; round++)
    await Promise.all([
      ...Array.from({ length: 10 }, () => client.account_verify()),
      fetch(`${url}/api/rpc?method=account_verify&id=1`).then((response) => response.text()),
      fetch(`${url}/health/live`).then((response) => response.text()),
    ])
  for (let round = 0; round < 5; round++) await client.cell_list({ limit: 200 })
}

async function attack(
  server: ServerProcess,
  { seconds, chosen, isAlone }: (typeof rounds)[number],
  stalls: string,
): Promise<string[]> {
  writeFileSync(stalls, '')
  const attacker = spawn(
    process.execPath,
    [fileURLToPath(new URL('attacker.ts', import.meta.url)), server.url, seconds, ...chosen],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  )
  const ended = once(attacker, 'close')
  const before = memoryOf(server.pid)
  const watch = { isOver: false }
  const kept = new Agent({ keepAlive: true, maxSockets: 1 })
  const watched = Promise.all([
    highestMemory(server.pid, watch),
    slowestHealth(server, watch, kept),
    slowestHealth(server, watch, false),
  ])
  const [code] = await ended
  watch.isOver = true
  const [memory, health, fresh] = await watched
  kept.destroy()
  const stall = Math.max(0, ...readFileSync(stalls, 'utf8').split('\n').map(Number))
  console.log(`memory: ${before} MiB before, at most ${memory} MiB (${max.memory} allowed)`)
  console.log(`/health/live: ${told(health)} (${max.health} allowed)`)
  console.log(`/health/live on new connections: ${told(fresh)} (${max.health} allowed)`)
  console.log(`event loop: busy for at most ${stall} ms${isAlone ? ` (${max.stall} allowed)` : ''}\n`)
  return [
    code === 0 ? '' : `the attacker ended with ${code}`,
    memory <= max.memory ? '' : `memory rose to ${memory} MiB`,
    health.max <= max.health ? '' : `/health/live took ${health.max} ms`,
    fresh.max <= max.health ? '' : `/health/live took ${fresh.max} ms on a new connection`,
    !isAlone || stall <= max.stall ? '' : `the event loop was busy for ${stall} ms`,
  ].filter(Boolean)
}

async function afterwards(server: ServerProcess): Promise<string[]> {
  const served = await server.client.account_verify().then(
    () => true,
    () => false,
  )
  const stopped = await server.end('SIGTERM')
  return [
    served ? '' : 'a call afterwards was not answered',
    stopped.code === 0 ? '' : `the server ended with ${stopped.code}\n${stopped.stderr.slice(-2000)}`,
  ].filter(Boolean)
}

/** Resident memory in MiB; infinite if the process is gone. */
function memoryOf(pid: number): number {
  try {
    const [, kibibytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Math.round(Number(kibibytes ?? Number.NaN) / 1024)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

async function highestMemory(pid: number, watch: { isOver: boolean }): Promise<number> {
  let highest = 0
  while (!watch.isOver) {
    highest = Math.max(highest, memoryOf(pid))
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return highest
}

function told({ count, p50, max }: Awaited<ReturnType<typeof slowestHealth>>): string {
  return `${count} times, p50 ${p50} ms, at most ${max} ms`
}

/**
 * Leaves out the time that a thread of the server or of this process waited for the processor. The thread that waited
 * longest counts, as the main thread waits for those that collect garbage.
 */
async function slowestHealth({ pid, url }: ServerProcess, watch: { isOver: boolean }, agent: Agent | false) {
  const times: number[] = []
  while (!watch.isOver) {
    const queued = () => new Map([...queuedMs(pid), ...queuedMs(process.pid)])
    const [begun, before] = [performance.now(), queued()]
    const isAnswered = await health(url, agent)
    const ms = performance.now() - begun
    const waits = [...queued()].map(([thread, after]) => after - (before.get(thread) ?? after))
    times.push(isAnswered ? Math.max(0, ms - Math.max(0, ...waits)) : Number.POSITIVE_INFINITY)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  times.sort((a, b) => a - b)
  const at = (share: number): number => Math.round(times[Math.floor(share * (times.length - 1))] as number)
  return { count: times.length, p50: at(0.5), max: at(1) }
}

/** How long each thread of a process has waited for a processor so far; empty where the system does not report it. */
function queuedMs(pid: number): Map<string, number> {
  try {
    const threads = readdirSync(`/proc/${pid}/task`)
    return new Map(
      threads.map((id) => {
        const [, queued] = readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8').split(' ')
        return [`${id}`, Number(queued) / 1_000_000]
      }),
    )
  } catch {
    return new Map()
  }
}

function health(url: string, agent: Agent | false): Promise<boolean> {
  return new Promise((resolve) => {
    const sent = request(`${url}/health/live`, { agent, timeout: 20_000 }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode === 200))
    })
    sent.once('timeout', () => sent.destroy())
    sent.once('error', () => resolve(false))
    sent.end()
  })
}
