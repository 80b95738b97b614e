import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, readFileSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createGunzip } from 'node:zlib'
import { defaultHashing } from './hashing.ts'
import { machineLine } from './machine.ts'
import { password, prepare } from './measure.ts'
import { quantile, short, shuffled, table } from './numbers.ts'
import { loader, published, Started } from './processes.ts'
import { workloads } from './workloads.ts'

/**
 * `npm run bench:backup`: what callers notice of `cellkeep backup`, and how fast and large it is. Slices of a steady, mixed
 * load without a backup and with one take turns, and the latencies of each kind are pooled. Exits 1 over a bar.
 */
const { values: flags } = parseArgs({
  options: {
    cells: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '6' },
    /** Of one slice. */
    seconds: { type: 'string', default: '4' },
    /** Slices with a backup in a round, at most as many as the backup lasts, and as many without. */
    slices: { type: 'string', default: '3' },
    /** Calls per second. */
    rate: { type: 'string', default: '120' },
    /** Max rate of the backups under load, in MB/s; 0: as fast as possible. */
    'max-rate': { type: 'string', default: '4' },
  },
})
const mixed = ['account_verify', 'cell_get', 'cell_get own', 'cell_list', 'cell_create']
const bars = { ratio: 1.2, memoryMb: 150 }

const started = new Started()
try {
  const options = { cells: Number(flags.cells), sessions: 500, hashing: defaultHashing() }
  const { server, world, client, socket, facts } = await prepare(started, options)
  const bin = await published(started)
  const requests = shuffled(
    workloads(world, password)
      .filter(({ name }) => mixed.includes(name))
      .flatMap((one) => shuffled(one.requests).slice(0, 400)),
  )
  const load = loader(started)
  const slice = async (): Promise<number[]> => {
    const [perSecond, seconds] = [Number(flags.rate), Number(flags.seconds)]
    return (await load({ port: server.port, requests, connections: 64, perSecond, seconds })).samples ?? []
  }
  await client.query('checkpoint')
  const alone = await backUp([])
  await alone.ended
  const fileMb = statSync(alone.file).size / 1e6
  const textMb = (await uncompressed(alone.file)) / 1e6
  for (let warm = 0; warm < 2; warm++) await slice()

  const without: number[][] = []
  const during: number[][] = []
  for (let round = 0; round < Number(flags.rounds); round++) {
    const backup = await backUp(flags['max-rate'] === '0' ? [] : ['--max-rate', flags['max-rate']])
    let count = 0
    for (; count < Number(flags.slices); count++) {
      const seen = await slice()
      if (!backup.isRunning()) break
      during.push(seen)
    }
    backup.end()
    await backup.ended
    await delay(1_000)
    for (let n = 0; n < count; n++) without.push(await slice())
  }
  const of = (slices: number[][], share: number): number => quantile(slices.flat(), share)
  const ratio = of(during, 0.99) / of(without, 0.99)
  const halves = [0, 1].map((rest) =>
    of(
      without.filter((_, at) => at % 2 === rest),
      0.99,
    ),
  ) as [number, number]
  const pair = (slices: number[][]): string =>
    `${short(of(slices, 0.5))}, ${short(of(slices, 0.99))} ms of ${slices.flat().length}`
  const lines: [string, string][] = [
    ['without load, as fast as it can: seconds', short(alone.seconds)],
    ['uncompressed', `${short(textMb)} MB, ${short(textMb / alone.seconds)} MB/s`],
    ['the file', `${short(fileMb)} MB`],
    ['memory of the process, at most', `${short(alone.memoryMb)} MB`],
    ['calls without a backup: p50, p99', pair(without)],
    ['calls during one: p50, p99', pair(during)],
    ['p99 during ÷ without', short(ratio)],
    ['p99 of every second slice without ÷ the others', short(halves[0] / halves[1])],
  ]
  console.log(
    [
      `# A backup of ${flags.cells} cells, and one at ${flags['max-rate']} MB/s beside ${flags.rate} calls a second`,
      table(['What', 'measured'], lines),
      machineLine(facts),
    ].join('\n\n'),
  )
  process.exitCode = ratio <= bars.ratio && alone.memoryMb <= bars.memoryMb ? 0 : 1

  /** Resolves once the backup reads. */
  async function backUp(paced: string[]) {
    const dataDir = dirname(socket)
    const file = join(dataDir, '..', 'backup.gz')
    await rm(file, { force: true })
    const begun = performance.now()
    const child = spawn(process.execPath, [bin, 'backup', file, '--json', ...paced], {
      // A session of its own, as cron gives it.
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: process.env.PATH, CELLKEEP_DATA_DIR: dataDir },
    })
    const done = { file, seconds: 0, memoryMb: 0 }
    const watch = setInterval(() => {
      done.memoryMb = Math.max(done.memoryMb, peakOf(child.pid as number))
    }, 100)
    const isRunning = (): boolean => child.exitCode === null && child.signalCode === null
    const end = (): void => void (isRunning() && child.kill('SIGTERM'))
    started.add(async () => end())
    const ended = once(child, 'exit').then(() => {
      clearInterval(watch)
      done.seconds = (performance.now() - begun) / 1000
    })
    await once(child.stderr, 'data')
    child.stderr.resume()
    return Object.assign(done, { isRunning, end, ended })
  }
} finally {
  await started.close()
}

/** The most memory that was resident, in MB; 0 once the process has ended. */
function peakOf(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}

async function uncompressed(file: string): Promise<number> {
  let bytes = 0
  for await (const chunk of createReadStream(file).pipe(createGunzip())) bytes += (chunk as Buffer).length
  return bytes
}
