import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import pg from 'pg'
import { createService } from '../src/create-service.ts'
import { planning } from '../src/db/servers/session-settings.ts'
import { silentLog } from '../src/log/log.ts'
import type { Service } from '../src/service.ts'
import { cloneDatabase, migratedTemplate, startCluster, toUrl } from '../src/testing/cluster.ts'
import { machine } from './machine.ts'
import { Started } from './processes.ts'
import { type Case, deepCursor, type Filter, listCases } from './scale-cases.ts'
import { explain } from './scale-plan.ts'
import { pointCases } from './scale-point-cases.ts'
import { isOver, type Row, type ScaleRun, scaleReport } from './scale-report.ts'
import { timing } from './scale-timing.ts'
import { byTurns, type Call } from './turns.ts'
import { callers, generateWorld, indexOf, openSessions } from './world.ts'

/**
 * `npm run bench:scale`: the same calls in a small and a large world, in two databases of one cluster, through the
 * real service in process. Calls alternate between the worlds, and ratios of medians are compared. fsync is off and
 * everything is in memory, so this measures work, not the disk. With 1 M cells it takes a quarter of an hour on two
 * free cores, two minutes of it for the worlds. `--minutes` limits the rest; the report names the cases that did not
 * run. `--cells 10000000` takes half an hour more and 30 GB of disk.
 */
const { values: flags } = parseArgs({
  options: {
    cells: { type: 'string', default: '1000000' },
    base: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    /** Max time for the cases, without making the worlds. */
    minutes: { type: 'string', default: '20' },
    /** Number of requests for hidden and for missing cells, to compare the time of the refusals. */
    samples: { type: 'string', default: '1000' },
    /** Only cases whose name contains one of these comma-separated texts. */
    only: { type: 'string', default: '' },
    /** Makes only cells and their grants and runs only the lists; takes half the time and disk. */
    lists: { type: 'boolean', default: false },
    /** Directory for the worlds; defaults to the temporary directory. */
    dir: { type: 'string' },
    out: { type: 'string', default: join(import.meta.dirname, 'results') },
  },
})
/** Large enough to keep a world of 1 M cells in memory, and to write it out before it is measured. */
const server = {
  shared_buffers: `${Math.floor(totalmem() / 4 / 2 ** 20)}MB`,
  max_wal_size: '4GB',
  max_parallel_maintenance_workers: '2',
}
const sizes = { small: Number(flags.base), large: Number(flags.cells) }
const keys = ['bench-key-bench-key-bench-key-bench-key-1']
/** Max time for the rounds of one case. */
const caseLimitMs = 3_000
const writeRounds = 10

type World = {
  service: Service
  client: pg.Client
  cookies: Map<string, string>
  cells: number
  /** Statements sent since the service started. */
  statements: number
}

const started = new Started()
try {
  const run = await scale()
  const text = scaleReport(run)
  console.log(text)
  if (flags.out) {
    await mkdir(flags.out, { recursive: true })
    await writeFile(join(flags.out, 'scale.json'), `${JSON.stringify(run, null, 1)}\n`)
    await writeFile(join(flags.out, 'scale.md'), text)
  }
} finally {
  await started.close()
}

async function scale(): Promise<ScaleRun> {
  const cluster = await startCluster({ within: flags.dir, settings: server })
  started.add(cluster.stop)
  const template = await migratedTemplate(cluster.connection)
  const worlds = {
    small: await makeWorld(cluster.connection, template, sizes.small),
    large: await makeWorld(cluster.connection, template, sizes.large),
  }
  // Otherwise the new world is still being written during the first cases: a clone took seconds.
  await worlds.large.client.query('checkpoint')
  await promisify(execFile)('sync')
  const facts = await machine(worlds.large.client)
  const refused = (caller: string) => (params: object) =>
    callOf(worlds.large, { method: 'cell_get', caller, refusal: 'cell_not_found' })(params)
  const who = new Map(['nobody', 'anonymous'].map((caller) => [caller, refused(caller)]))
  const refusals = await timing(worlds.large.client, who, Number(flags.samples))
  const rows: Row[] = []
  const skipped: string[] = []
  const until = performance.now() + Number(flags.minutes) * 60_000
  // Writes run last, since they change the worlds.
  const points = flags.lists ? [] : pointCases()
  const all = [
    ...points.filter(({ isWrite }) => !isWrite),
    ...listCases(sizes.large),
    ...points.filter(({ isWrite }) => isWrite),
  ]
  const texts = flags.only.split(',')
  for (const one of all.filter(({ name }) => texts.some((text) => name.includes(text))))
    if (performance.now() > until && !one.isWrite) skipped.push(one.name)
    else rows.push(...(await compare(one, worlds).catch((error) => failed(one, error))))
  return { machine: facts, sizes, rows, refusals, skipped }

  function failed({ name }: Case, error: Error): Row[] {
    skipped.push(`${name} (${error.message})`)
    return []
  }
}

/** The row of a case; none if one of the worlds has no such page. */
async function compare(one: Case, worlds: { small: World; large: World }): Promise<Row[]> {
  const { against } = one
  const small = await prepare(one, against ? worlds.large : worlds.small, against ?? one.params)
  const large = await prepare(one, worlds.large, one.params)
  if (!small || !large) return []
  const turns = { rounds: Number(flags.rounds), limitMs: caseLimitMs }
  const compared = await byTurns(small, large, one.isWrite ? { rounds: writeRounds, warm: 1 } : turns)
  const before = worlds.large.statements
  await large()
  const row: Row = { ...one, ...compared, statements: worlds.large.statements - before }
  if (isOver(row) && !one.isWrite)
    row.plan = await explain(worlds.large.client, large).catch((error) => `No plan: ${error}`)
  return [row]
}

/** The call of the case in a world, which resolves to the number of rows; undefined if there is no such page. */
async function prepare(one: Case, world: World, paramsOf: Filter): Promise<Call | undefined> {
  const call = callOf(world, one)
  const params = paramsOf(world.cells)
  if (one.isDeep) {
    const cursor = await deepCursor(call, params)
    if (cursor === undefined) return undefined
    Object.assign(params, { cursor, limit: 10 })
  }
  return async () => {
    const answer: Record<string, unknown> = await call(params)
    const rows = [answer.cells, answer.fields, answer.items, answer.events].find(Array.isArray)
    return rows?.length ?? 1
  }
}

/** Calls as a caller of the world; an expected refusal counts as an empty result. */
function callOf(
  { service, cookies }: World,
  { method, caller, refusal }: Pick<Case, 'method' | 'refusal'> & { caller: string },
) {
  const cookie = cookies.get(caller)
  return async (params: object): Promise<Record<string, unknown>> => {
    const answer = service.call(method, params, cookie === undefined ? {} : { headers: { cookie } })
    return (await answer.catch((error) => {
      if (refusal && error.data?.reason === refusal) return {}
      throw error
    })) as Record<string, unknown>
  }
}

async function makeWorld(connection: pg.ClientConfig, template: string, cells: number): Promise<World> {
  const database = await cloneDatabase(connection, template)
  const client = new pg.Client({ ...database.connection, options: planning })
  await client.connect()
  const begun = performance.now()
  await generateWorld(client, { cells, seed: Number(flags.seed), relations: !flags.lists })
  const world = { cells, client, statements: 0 }
  const service = await createService({
    onStatement: () => {
      world.statements++
    },
    log: silentLog,
    env: 'development',
    argon2: '8,1,1',
    statement_timeout_ms: 30_000,
    cookie_keys: keys,
    database_url: toUrl(database.connection),
    limit_cell_read: 'off',
    limit_cell_create: 'off',
    limit_cell_write: 'off',
    limit_cell_clone: 'off',
  })
  console.log(`A world of ${cells} cells, made in ${((performance.now() - begun) / 1000).toFixed(0)} s`)
  started.add(async () => {
    await client.end()
    await service.close()
  })
  const opened = await openSessions(client, callers.map(indexOf), keys)
  const cookies = new Map<string, string>(callers.map((name, at) => [name, opened[at] as string]))
  return Object.assign(world, { service, cookies })
}
