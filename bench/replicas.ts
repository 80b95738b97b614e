import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { postmasterPid } from '../src/embedded/postgres-process.ts'
import { stoppableCluster } from '../test/helpers/stoppable-cluster.ts'
import { machine, machineLine } from './machine.ts'
import { slicer, type Target } from './measure.ts'
import { median, short, table } from './numbers.ts'
import { product, Started, temporary } from './processes.ts'
import { workloads } from './workloads.ts'
import { generateWorld, idOf, indexOf, openSessions } from './world.ts'

/**
 * `npm run bench:replicas`: how much work a replica that answers reads takes off the primary. Two nodes take turns, one
 * of which has the replica; the ratio is that of the processor time of the primary in neighbouring slices.
 * `pg_stat_statements` shows what the primary was asked.
 */
const { values: flags } = parseArgs({
  options: {
    cells: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '1.5' },
  },
})
const sessions = 500
const bar = 0.6
const chosen = ['cell_get own', 'cell_get anonymous', 'cell_list own', 'cell_list', 'audit_log_list']
const settings = {
  fsync: 'off',
  shared_preload_libraries: 'pg_stat_statements',
  hot_standby_feedback: 'on',
  autovacuum: 'off',
}

const statements = `
  select query, calls::float8 as calls from pg_stat_statements
  where dbid = (select oid from pg_database where datname = current_database()) and query !~ 'pg_stat_statements'`

const started = new Started()
try {
  const [primary, standby] = await Promise.all([
    stoppableCluster({ wal_level: 'replica', max_wal_senders: '10' }),
    stoppableCluster(),
  ])
  for (const { remove } of [primary, standby]) started.add(remove)
  await Promise.all([primary.stop(), standby.stop()])
  await standby.replaceBy(primary)
  await standby.follow(primary)
  await primary.start(settings)
  await standby.start(settings)

  const keys = ['k'.repeat(43)]
  const limits = 'CELL_READ ADMIN_READ ACCOUNT CREDENTIAL'.split(' ')
  const node = async (own: Record<string, string>): Promise<Target> => {
    const at = await product(started, join(await temporary(started), 'data'), {
      ...Object.fromEntries(limits.map((name) => [`CELLKEEP_LIMIT_${name}`, 'off'])),
      CELLKEEP_DATABASE_URL: primary.url,
      CELLKEEP_COOKIE_KEYS: keys.join(','),
      ...own,
    })
    return { ...at, databasePid: (await postmasterPid(primary.db)) as number }
  }
  const alone = await node({})
  const client = new pg.Client(primary.url)
  await client.connect()
  started.add(() => client.end())
  await client.query('create extension pg_stat_statements; set search_path = cellkeep, public')
  await generateWorld(client, { cells: Number(flags.cells), relations: true })
  const cookies = await openSessions(
    client,
    Array.from({ length: sessions }, (_, index) => index),
    keys,
  )
  await client.query('vacuum (analyze)')
  const visible = await client.query(
    `select id from cell where visibility = 'public' and deleted_at is null order by id limit 1000`,
  )
  const own = await client.query(
    `select distinct on (created_by) created_by as actor_id, id from cell
     where deleted_at is null and visibility = 'private' and path is null and created_by = any ($1)
     order by created_by, id`,
    [cookies.map((_, index) => idOf('actor', index))],
  )
  const accounts = new Map(cookies.map((_, index) => [idOf('actor', index), index]))
  const world = {
    cookies,
    bystanders: [],
    admin: cookies[indexOf('admin')] as string,
    visible: visible.rows.map(({ id }) => id),
    own: own.rows.map((row) => {
      const account = accounts.get(row.actor_id) as number
      return { ...row, account, cookie: cookies[account] as string }
    }),
  }
  const replicated = await node({ CELLKEEP_DATABASE_REPLICA_URLS: standby.url })
  const facts = await machine(client)
  const slice = slicer(started, Number(flags.seconds))

  const lines: string[][] = []
  const asked = new Map<string, number>()
  let reads = 0
  for (const workload of workloads(world, '').filter(({ name }) => chosen.includes(name))) {
    const cost = async (target: Target) => (await slice(workload, target)).databaseCpu
    /** Also shows what the primary was asked meanwhile. */
    const spared = async (): Promise<number> => {
      await client.query('select pg_stat_statements_reset()')
      const { databaseCpu, count } = await slice(workload, replicated)
      reads += count
      for (const { query, calls } of (await client.query(statements)).rows)
        asked.set(query, (asked.get(query) ?? 0) + calls)
      return databaseCpu
    }
    for (let warm = 0; warm < 2; warm++) for (const one of [alone, replicated]) await cost(one)
    const [ratios, without, withOne]: [number[], number[], number[]] = [[], [], []]
    for (let round = 0; round < Number(flags.rounds); round++) {
      const [a, b, c] = [await cost(alone), await spared(), await cost(alone)]
      ratios.push((2 * b) / (a + c))
      without.push((a + c) / 2)
      withOne.push(b)
    }
    lines.push([workload.name, ...[without, withOne, ratios].map((values) => short(median(values)))])
    if (median(ratios) > bar) process.exitCode = 1
  }
  const shares = new Map<string, number>()
  for (const [query, calls] of asked)
    shares.set(named(query), (shares.get(named(query)) ?? 0) + calls / reads)
  console.log(
    [
      `# Reads that a replica answers, bar ${bar}`,
      table(['Method', 'primary µs alone', 'primary µs', 'ratio'], lines),
      `What the primary was asked for, of ${reads} reads:`,
      table(
        ['Statement', 'for each read'],
        [...shares]
          .filter(([, share]) => share >= 0.001)
          .sort(([, a], [, b]) => b - a)
          .map(([what, share]) => [what, short(share)]),
      ),
      machineLine(facts),
    ].join('\n\n'),
  )
} finally {
  await started.close()
}

/** What a statement is for. */
function named(query: string): string {
  const [, name] =
    [
      [/\bauth_session\b/, 'the credential, with the place in the log'],
      [/^select \(case current_setting/, 'the place in the log, for callers without a credential'],
      [/\baudit_waiting\b/, 'whether rows of the audit log wait for their numbers'],
      [/^with (me|page)\b|^select asked\.nth\b/, 'reads for which the replica was too far behind'],
    ].find(([pattern]) => (pattern as RegExp).test(query)) ?? []
  return (name as string | undefined) ?? `\`${query.replace(/\s+/g, ' ').slice(0, 80)}\``
}
