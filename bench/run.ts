import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { drivers } from './drivers.ts'
import { defaultHashing } from './hashing.ts'
import { password, prepare, type Slice, slicer, summary, type TakeSlice, type Target } from './measure.ts'
import { median } from './numbers.ts'
import { ask, helper, loader, Started } from './processes.ts'
import { type Measured, type Run, report } from './report.ts'
import { floorWorkload, probes, type Workload, workloads } from './workloads.ts'

/**
 * `npm run bench`: compares the product as users start it, with a real database and real fsync, with a bare
 * `node:http` echo. Short slices of floor and workload alternate, and each ratio is between neighbouring slices,
 * so that a noisy machine disturbs both alike.
 */
const { values: flags } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1' },
    cells: { type: 'string', default: '10000' },
    sessions: { type: 'string', default: '500' },
    /** Directory for the results; `--out ''` writes none. */
    out: { type: 'string', default: join(import.meta.dirname, 'results') },
    /** Concurrent password hashes, of the server and of the bare rate; the default is the server's. */
    hashes: { type: 'string' },
    /** Node options for the server, such as `--node=--cpu-prof`. */
    node: { type: 'string', default: '' },
  },
})
const rounds = Number(flags.rounds)
const seconds = Number(flags.seconds)
const cells = Number(flags.cells)
/** Longer slices for logins: they are slow, and those in flight when a slice ends do not count. */
const stormSeconds = 8 * seconds

const hashing = defaultHashing()
if (flags.hashes) hashing.concurrency = Number(flags.hashes)

const started = new Started()
try {
  const run = await bench()
  const text = report(run)
  console.log(text)
  if (flags.out) {
    await mkdir(flags.out, { recursive: true })
    await writeFile(join(flags.out, 'latest.json'), `${JSON.stringify(run, null, 2)}\n`)
    await writeFile(join(flags.out, 'latest.md'), text)
  }
} finally {
  await started.close()
}

async function bench(): Promise<Run> {
  const { server, world, facts } = await prepare(started, {
    cells,
    hashing,
    sessions: Number(flags.sessions),
    node: flags.node.split(' ').filter(Boolean),
  })
  const { cookies, bystanders } = world
  const floor = floorWorkload(cookies)
  const bare = helper(started, 'floor.ts')
  const echo: Target = { port: await ask<number>(bare), pid: bare.pid as number }
  const slice = slicer(started, seconds)
  const chosen = [...workloads(world, password), ...drivers(world)].filter(
    ({ name }) => !flags.only || flags.only.split(',').includes(name),
  )

  for (const workload of [floor, ...chosen]) await slice(workload, workload === floor ? echo : server)
  const floors: Slice[] = []
  const taken = chosen.map((workload) => ({ workload, slices: [] as Slice[], beside: [] as number[] }))
  for (let round = 0; round < rounds; round++)
    for (const { workload, slices, beside } of taken) {
      floors.push(await slice(floor, echo))
      beside.push(floors.length - 1)
      slices.push(await slice(workload, server))
    }
  floors.push(await slice(floor, echo))
  const measured = taken.map(({ workload, slices, beside }): Measured => {
    const neighbours = (of: 'rate' | 'p99' | 'cpu') =>
      beside.map((at) => ((floors[at] as Slice)[of] + (floors[at + 1] as Slice)[of]) / 2)
    const ratio = (of: 'rate' | 'p99' | 'cpu') =>
      median(neighbours(of).map((floorValue, at) => (slices[at] as Slice)[of] / floorValue))
    return {
      ...summary(workload, slices),
      ratio: { rate: ratio('rate'), p99: ratio('p99'), cpu: ratio('cpu') },
    }
  })
  const login = chosen.find(({ name }) => name === 'login')
  return {
    machine: facts,
    settings: { rounds, seconds, cells, sessions: cookies.length, fsync: 'on' },
    floor: summary(floor, floors),
    workloads: measured,
    ...(login && { login: await loginStorm(login, bystanders, server, slice) }),
  }
}

/** Compares logins with the bare rate of the hash, and measures the latency of other requests meanwhile. */
async function loginStorm(
  login: Workload,
  bystanders: readonly string[],
  server: Target,
  slice: TakeSlice,
): Promise<NonNullable<Run['login']>> {
  const argon = helper(started, 'argon.ts')
  const watch = loader(started)
  const { live, verify } = probes(bystanders)
  const pair = () => ({ idle: [] as number[], storm: [] as number[] })
  const seen = { argon: [] as number[], ratio: [] as number[], live: pair(), verify: pair() }
  /** The p99 of one client, first alone and then during logins. */
  const beside = async (probe: Workload, p99: ReturnType<typeof pair>): Promise<void> => {
    const watched = { ...probe, port: server.port, seconds: stormSeconds, pauseMs: 5 }
    p99.idle.push((await watch(watched)).p99)
    const [, storm] = await Promise.all([slice(login, server, stormSeconds), watch(watched)])
    p99.storm.push(storm.p99)
  }
  const bareRate = async (): Promise<number> => {
    seen.argon.push(await ask<number>(argon, { options: hashing, seconds: stormSeconds }))
    return seen.argon.at(-1) as number
  }
  for (let round = 0; round < rounds; round++) {
    // Between two neighbouring slices, and without the probe, which uses CPU itself.
    const before = await bareRate()
    const { rate } = await slice(login, server, stormSeconds)
    seen.ratio.push(rate / ((before + (await bareRate())) / 2))
    await beside(live, seen.live)
    await beside(verify, seen.verify)
  }
  return {
    argonRate: median(seen.argon),
    ratio: median(seen.ratio),
    probeIdleP99: median(seen.live.idle),
    probeStormP99: median(seen.live.storm),
    verifyIdleP99: median(seen.verify.idle),
    verifyStormP99: median(seen.verify.storm),
  }
}
