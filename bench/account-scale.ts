import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { createService } from '../src/create-service.ts'
import { silentLog } from '../src/log/log.ts'
import type { Service } from '../src/service.ts'
import { cloneDatabase, migratedTemplate, startCluster, toUrl } from '../src/testing/cluster.ts'
import { commonPrefix, generateAccounts, rarePrefix, scopeHolders } from './account-world.ts'
import { type Machine, machine, machineLine } from './machine.ts'
import { short, table } from './numbers.ts'
import { Started } from './processes.ts'
import { deepCursor } from './scale-cases.ts'
import { explain, writePlans } from './scale-plan.ts'
import { byTurns, type Call, type Compared } from './turns.ts'
import { type CallerName, idOf, indexOf, openSessions } from './world.ts'

/**
 * `npm run bench:accounts`: searches and admin lists in a world of few and in one of many accounts, two
 * databases of one cluster, through the real service in process. Calls alternate between the worlds, and medians
 * are compared. fsync is off and everything is in memory, so this measures work, not the disk. Exits 1 over the bar.
 */
const { values: flags } = parseArgs({
  options: {
    accounts: { type: 'string', default: '1000000' },
    base: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '300' },
    /** Only cases whose name contains this text. */
    only: { type: 'string', default: '' },
    out: { type: 'string', default: join(import.meta.dirname, 'results') },
  },
})
const sizes = { small: Number(flags.base), large: Number(flags.accounts) }
const keys = ['bench-key-bench-key-bench-key-bench-key-1']
const bar = 1.5
/** Rows per page up to page 200, so that a world of a thousand accounts has one. */
const deepPage = { limit: 4, before: 796 }

type World = { service: Service; client: pg.Client; cookies: Map<CallerName, string> }
type Case = { name: string; method: string; caller: CallerName; params: object; isDeep?: boolean }
type Row = Compared & { name: string; plan: string }

const search = (name: string, caller: CallerName, params: object): Case => ({
  name: `actor_search, ${name}`,
  method: 'actor_search',
  caller,
  params,
})
const list = (method: string): Case[] => [
  { name: `${method}, first page`, method, caller: 'admin', params: {} },
  { name: `${method}, page 200`, method, caller: 'admin', params: {}, isDeep: true },
]
const found = (name: string, params: object): Case[] => [
  { name: `admin_account_list, ${name}`, method: 'admin_account_list', caller: 'admin', params },
]
const scope_ids = [idOf('scope', 0)]
const cases: Case[] = [
  search('one letter', 'admin', { query: commonPrefix[0] }),
  search('common prefix', 'admin', { query: commonPrefix }),
  search('rare prefix', 'admin', { query: rarePrefix }),
  search('no such prefix', 'admin', { query: `${rarePrefix}q` }),
  search(`common prefix, scope of ${scopeHolders}`, 'nobody', { query: commonPrefix, scope_ids }),
  ...list('admin_account_list'),
  ...found('common prefix', { query: 'user' }),
  ...found('rare prefix', { query: 'user77' }),
  ...found('common role', { role: 'team' }),
  ...found('rare role', { role: 'admin' }),
  ...found('common prefix, rare role', { query: 'user', role: 'admin' }),
  ...list('admin_session_list'),
]

const started = new Started()
try {
  const cluster = await startCluster()
  started.add(cluster.stop)
  const template = await migratedTemplate(cluster.connection)
  const small = await makeWorld(cluster.connection, template, sizes.small)
  const large = await makeWorld(cluster.connection, template, sizes.large)
  const facts = await machine(large.client)
  const rows: Row[] = []
  for (const one of cases.filter(({ name }) => name.includes(flags.only)))
    rows.push(await compare(one, small, large))
  const text = report(rows, facts)
  console.log(text)
  if (flags.out) {
    await mkdir(flags.out, { recursive: true })
    await writeFile(join(flags.out, 'accounts.md'), text)
    await writePlans(flags.out, 'accounts', rows)
  }
  process.exitCode = rows.some(({ ratio }) => ratio > bar) ? 1 : 0
} finally {
  await started.close()
}

async function compare(one: Case, small: World, large: World): Promise<Row> {
  const calls = [await prepare(one, small), await prepare(one, large)] as const
  const compared = await byTurns(...calls, { rounds: Number(flags.rounds) })
  return { name: one.name, ...compared, plan: await explain(large.client, calls[1]) }
}

/** A function that makes the call of the case in a world. */
async function prepare(one: Case, world: World): Promise<Call> {
  const cookie = world.cookies.get(one.caller) as string
  const call = (params: object) => world.service.call(one.method, params, { headers: { cookie } })
  let { params } = one
  if (one.isDeep) {
    const cursor = await deepCursor(call, params, deepPage.before)
    if (cursor === undefined) throw new Error(`${one.name}: the smaller world has no such page`)
    params = { ...params, cursor, limit: deepPage.limit }
  }
  return async () => {
    const [rows] = Object.values((await call(params)) as Record<string, unknown>).filter(Array.isArray)
    return rows?.length ?? 0
  }
}

async function makeWorld(connection: pg.ClientConfig, template: string, accounts: number): Promise<World> {
  const database = await cloneDatabase(connection, template)
  const client = new pg.Client(database.connection)
  await client.connect()
  const begun = performance.now()
  await generateAccounts(client, accounts)
  console.log(`A world of ${accounts} accounts, made in ${short((performance.now() - begun) / 1000)} s`)
  const service = await createService({
    log: silentLog,
    env: 'development',
    argon2: '8,1,1',
    cookie_keys: keys,
    database_url: toUrl(database.connection),
    limit_lookup: 'off',
    limit_admin_read: 'off',
  })
  started.add(async () => {
    await client.end()
    await service.close()
  })
  const names: CallerName[] = ['admin', 'nobody']
  const opened = await openSessions(client, names.map(indexOf), keys)
  return { service, client, cookies: new Map(names.map((name, at) => [name, opened[at] as string])) }
}

function report(rows: readonly Row[], facts: Machine): string {
  const shown = rows.map(({ name, small, large, ratio }) => [
    name,
    short(ratio),
    ...[small.median, large.median, small.p99, large.p99].map(short),
    `${small.rows} / ${large.rows}`,
    ratio <= bar ? 'yes' : 'NO',
  ])
  return `${[
    `# ${sizes.large} accounts against ${sizes.small}`,
    `Written by \`npm run bench:accounts\`: medians in the large world ÷ medians in the small one, ${flags.rounds} calls
each in turn, the bar is ${bar}. First page as by default, page 200 of ${deepPage.limit} rows. In process, fsync off, data in memory.`,
    table(['Call', 'ratio', 'small ms', 'large ms', 'small p99 ms', 'large p99 ms', 'rows', 'flat'], shown),
    machineLine(facts),
  ].join('\n\n')}\n`
}
