/**
 * Puts nodes on several PostgreSQL servers under load and inflicts one fault after another, alone and in pairs. After
 * each it checks that no acknowledged write is lost, and the other invariants.
 */
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { bootstrap, type Environment, workspace } from '../helpers/server-process.ts'
import { startEngine } from './engine.ts'
import { faultsOf } from './faults.ts'
import { residentMb, startFleet } from './fleet.ts'
import { createInvariants } from './invariants.ts'
import { cellLoad } from './load/cells.ts'
import { followerLoad } from './load/followers.ts'
import { revocationLoad } from './load/revocations.ts'
import { visibilityLoad } from './load/visibility.ts'
import { guessBudget, visitorLoad } from './load/visitors.ts'
import { NotHere, type Options, optionsOf } from './options.ts'
import { planOf, randomOf, type Step } from './plan.ts'
import { type Line, lineOf, tableOf, told } from './report.ts'
import { createWorld, type World } from './world.ts'

const options = given()
const faults = faultsOf(options)
const unknown = options.faults.filter((name) => !faults[name])
if (unknown.length > 0)
  throw new Error(`There is no fault ${unknown}; there are ${Object.keys(faults).join(', ')}.`)
const chosen = Object.fromEntries(
  Object.entries(faults).filter(([name]) => options.faults.length === 0 || options.faults.includes(name)),
)
const plan = planOf(options.seed, chosen, 20 + Math.ceil(options.minutes * 10))
console.log(`seed ${options.seed}: ${plan.map((step) => step.faults.join(' + ')).join(', ')}`)

const limits = [
  'CELL_CREATE',
  'CELL_WRITE',
  'CELL_READ',
  'LOGIN_IP',
  'ACCOUNT',
  'CREDENTIAL',
  'DISCOVERY',
  'LOOKUP',
]
const administrative = ['ADMIN_WRITE', 'ADMIN_READ', 'ROLE_WRITE', 'ROLE_REVOKE']
const settings = (ofDatabase: Environment): Environment => ({
  ...ofDatabase,
  CELLKEEP_COOKIE_KEYS: 'k'.repeat(43),
  CELLKEEP_COOKIE_SECURE: 'false',
  CELLKEEP_SHUTDOWN_DELAY_MS: `${2_000 * options.slack}`,
  CELLKEEP_LIMIT_STORE: 'postgres',
  CELLKEEP_AUDIT_RETENTION_DAYS: '30',
  CELLKEEP_LIMIT_LOGIN_ACCOUNT: `${guessBudget}/86400`,
  ...Object.fromEntries([...limits, ...administrative].map((name) => [`CELLKEEP_LIMIT_${name}`, 'off'])),
})

const space = await workspace()
/** What the end of the run has to close, the newest first. */
const open: (() => Promise<unknown>)[] = [space.remove]
const close = async (): Promise<void> => {
  for (const one of open.splice(0).reverse()) await one().catch((error) => console.error(error))
}
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void close().then(() => process.exit(1)))

try {
  process.exitCode = (await main()) ? 0 : 1
} finally {
  await close()
}

function given(): Options {
  try {
    return optionsOf(process.argv.slice(2))
  } catch (error) {
    if (!(error instanceof NotHere)) throw error
    console.log(`It cannot run here. ${error.message}`)
    process.exit(77)
  }
}

async function main(): Promise<boolean> {
  const engine = await startEngine(options)
  open.unshift(engine.remove)
  const fleet = await startFleet(options.nodes, space.make, engine.settings.map(settings))
  const [first] = fleet.nodes
  if (first) await bootstrap(first.process)
  const world = await createWorld(engine, fleet, options)
  open.push(async () => void world.endLoad())
  const invariants = createInvariants(world)
  await invariants.doctor()

  const cells = cellLoad(world)
  const revocations = revocationLoad(world)
  const visitors = visitorLoad(world, await space.make('backups'))
  const followers = followerLoad(world)
  const loads = [cells, revocations, visibilityLoad(world), visitors]
  const check = async (): Promise<void> => {
    invariants.answers()
    invariants.logs()
    for (const load of loads) await load.check()
  }

  await delay(5_000)
  await check()
  const until = performance.now() + options.minutes * 60_000
  const random = randomOf(options.seed)
  const lines: Line[] = []
  for (const step of plan) {
    if (performance.now() > until) break
    const episode = await inflict(
      step,
      world,
      (name) => faults[name]?.act({ world, cells, followers, random }),
      invariants.healed,
    )
    await delay(3_000 * options.slack + step.calmMs)
    const line = lineOf(episode, fleet.seen)
    lines.push(line)
    console.log(told(line))
    invariants.resumed(episode)
    invariants.unnoticed(episode)
    await check()
  }

  await world.endLoad()
  await check()
  await followers.finish()
  followers.close()
  await invariants.doctor()
  await invariants.leftovers()
  const replicaReads = await invariants.replicas()
  const memory = await Promise.all(fleet.nodes.map(({ process }) => residentMb(process.pid)))
  if (options.keep)
    await forever(`nodes ${fleet.nodes.map(({ url }) => url)}, database ${engine.primary.url}`)
  await fleet.close()
  // Its connections to the server outlive the nodes.
  for (const pooler of engine.poolers) await pooler.stop()
  await delay(200)
  await invariants.quiet()

  const summary = Object.assign({}, ...[...loads, followers].map((load) => load.summary()))
  const { violations } = world
  const report = options.report ?? join(tmpdir(), 'cluster-report.json')
  await writeFile(
    report,
    JSON.stringify(
      {
        options,
        lines,
        summary,
        replica_reads: replicaReads,
        calls: fleet.seen.length,
        memory_mb: memory,
        violations,
      },
      null,
      2,
    ),
  )
  console.log(
    [
      `\n${tableOf(lines)}\n\n${JSON.stringify(summary)}`,
      `${fleet.seen.length} calls; reads of replicas: ${JSON.stringify(replicaReads)}; ${report}`,
    ].join('\n'),
  )
  console.log(`${lines.length} passed, ${violations.length} failed`)
  return violations.length === 0
}

/** Both faults of a pair begin at nearly the same time. */
async function inflict(
  step: Step,
  world: World,
  act: (name: string) => Promise<void> | undefined,
  healed: () => Promise<void>,
) {
  const episode = { faults: step.faults, struck: performance.now(), healed: Number.POSITIVE_INFINITY }
  world.episodes.push(episode)
  await Promise.all(step.faults.map((name, at) => delay(at * 500).then(() => act(name))))
  await world.engine.settle()
  await healed()
  episode.healed = performance.now()
  return episode
}

/** Waits until the run is interrupted. */
function forever(what: string): Promise<never> {
  console.log(`Kept until Ctrl-C: ${what}`)
  return new Promise(() => setInterval(() => {}, 60_000))
}
