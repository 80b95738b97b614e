import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { silentLog } from '../src/core/log.ts'
import { createService, type Service } from '../src/service.ts'
import { cloneDatabase, migratedTemplate, startCluster, toUrl } from '../src/testing/cluster.ts'
import { machine } from './machine.ts'
import { median, quantile } from './numbers.ts'
import { Started } from './processes.ts'
import { type Case, cases, deepCursor, pointCases } from './scale-cases.ts'
import { explain } from './scale-plan.ts'
import { type Figures, type Row, type ScaleRun, scaleReport } from './scale-report.ts'
import { callers, generateWorld, indexOf, openSessions } from './world.ts'

/**
 * `npm run bench:scale`: the same calls in a small and in a large world, in two databases of one cluster,
 * through the real service in process. Small and large take turns; ratios of medians are judged. fsync is
 * off and everything is in memory: what is compared is the work, not the disk.
 */
const { values: flags } = parseArgs({
  options: {
    cells: { type: 'string', default: '1000000' },
    base: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '15' },
    /** Only cases whose name holds this text. */
    only: { type: 'string', default: '' },
    out: { type: 'string', default: join(import.meta.dirname, 'results') },
  },
})
const sizes = { small: Number(flags.base), large: Number(flags.cells) }
const keys = ['bench-key-bench-key-bench-key-bench-key-1']
/** A case that takes longer than this in all is not repeated further. */
const caseLimitMs = 4_000
const leastRounds = 3
/** PostgreSQL settles for a generic plan, or against it, after five runs. */
const warmRuns = 7

type World = { service: Service; client: pg.Client; cookies: Map<string, string>; cells: number }

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
  const cluster = await startCluster()
  started.add(cluster.stop)
  const template = await migratedTemplate(cluster.connection)
  const worlds = {
    small: await makeWorld(cluster.connection, template, sizes.small),
    large: await makeWorld(cluster.connection, template, sizes.large),
  }
  const facts = await machine(worlds.large.client)
  const rows: Row[] = []
  for (const one of [...cases(), ...pointCases()].filter(({ name }) => name.includes(flags.only)))
    rows.push(...(await compare(one, worlds)))
  return { machine: facts, sizes, rows }
}

/** No row where the smaller world has no such page. */
async function compare(one: Case, worlds: { small: World; large: World }): Promise<Row[]> {
  const small = await prepare(one, worlds.small)
  const large = await prepare(one, worlds.large)
  if (!small || !large) return []
  for (let run = 0; run < warmRuns; run++) for (const call of [small, large]) await call()
  const times = { small: [] as number[], large: [] as number[] }
  const found = { small: 0, large: 0 }
  const begun = performance.now()
  for (let round = 0; round < Number(flags.rounds); round++) {
    if (round >= leastRounds && performance.now() - begun > caseLimitMs) break
    for (const [world, call] of [
      ['small', small],
      ['large', large],
    ] as const) {
      const at = performance.now()
      found[world] = await call()
      times[world].push(performance.now() - at)
    }
  }
  const figures = (world: 'small' | 'large'): Figures => ({
    median: median(times[world]),
    p99: quantile(times[world], 0.99),
    rows: found[world],
  })
  const row: Row = { ...one, small: figures('small'), large: figures('large'), ratio: 0 }
  row.ratio = row.large.median / row.small.median
  if (row.ratio > one.bar && one.method !== 'cell_create')
    row.plan = await explain(worlds.large.client, large)
  return [row]
}

/** A call of the case in a world, which resolves to the number of rows; undefined without such a page. */
async function prepare(one: Case, world: World): Promise<(() => Promise<number>) | undefined> {
  const { service, cookies } = world
  const cookie = cookies.get(one.caller)
  const call = (params: object) =>
    service.call(one.method, params, cookie === undefined ? {} : { headers: { cookie } })
  const params = one.params(world.cells)
  if (one.isDeep) {
    const cursor = await deepCursor(call, params)
    if (cursor === undefined) return undefined
    Object.assign(params, { cursor, limit: 10 })
  }
  return async () => {
    const answer = (await call(params).catch((error) => {
      if (one.refusal && error.data?.reason === one.refusal) return {}
      throw error
    })) as { cells?: unknown[] }
    return answer.cells?.length ?? 1
  }
}

async function makeWorld(connection: pg.ClientConfig, template: string, cells: number): Promise<World> {
  const database = await cloneDatabase(connection, template)
  const client = new pg.Client(database.connection)
  await client.connect()
  const begun = performance.now()
  await generateWorld(client, { cells })
  const service = await createService({
    log: silentLog,
    env: 'development',
    argon2: '8,1,1',
    cookie_keys: keys,
    database_url: toUrl(database.connection),
    limit_cell_read: 'off',
    limit_cell_create: 'off',
  })
  console.log(`A world of ${cells} cells, made in ${((performance.now() - begun) / 1000).toFixed(0)} s`)
  started.add(async () => {
    await client.end()
    await service.close()
  })
  const opened = await openSessions(client, callers.map(indexOf), { keys })
  return { service, client, cells, cookies: new Map(callers.map((name, at) => [name, opened[at] as string])) }
}
