import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { StartError } from '../../errors.ts'
import { createClock } from '../clock.ts'
import type { DatabaseOptions } from '../pool.ts'
import { createAdmission, roleSettings } from './admission.ts'
import { type Connection, directOf } from './connection.ts'
import { dial } from './dial.ts'
import { configOf, limitsOf } from './session-settings.ts'
import { Unfit } from './unfit.ts'
import { unreachable } from './unreachable.ts'

type Options = Pick<DatabaseOptions, 'connection' | 'statementTimeoutMs'>

/**
 * Refuses a connection path on which the limits are not in force, and an engine that lacks guarantees the service
 * needs. Rejects with a StartError that says what to do.
 */
export async function requireSuitable(options: Options): Promise<void> {
  const { connection } = options
  const isDirect = connection.direct === undefined
  const found = await withTwo(options, connection, async (one, other) => {
    // Checked first, because commands without a direct URL may have left their own limits on sessions that the pooler
    // keeps.
    const isPooled = await sharesLocks(one, other)
    if (isPooled && isDirect)
      throw new StartError(
        'pooler_transaction_mode',
        'The database URL leads through a connection pooler in transaction mode: two sessions got the same advisory lock. Set CELLKEEP_DATABASE_DIRECT_URL (`database_direct_url`) to a URL past the pooler.',
        78,
      )
    if (isPooled) await requireTransactions(one)
    await requireLimits(options, one)
    await requireConnections(one)
    return isDirect ? await flawOf(one, other) : undefined
  })
  const flaw = isDirect
    ? found
    : await withTwo(options, directOf(connection), async (one, other) =>
        (await sharesLocks(one, other))
          ? 'advisory locks do not exclude each other'
          : await flawOf(one, other),
      )
  if (flaw !== undefined)
    throw new StartError('db_unsuitable', `The database cannot be used: ${flaw}. Use PostgreSQL 15 to 18.`, 3)
}

async function flawOf(one: pg.Client, other: pg.Client): Promise<string | undefined> {
  if (!(await undoesTables(one))) return 'a rollback does not undo the creation of a table'
  if (!(await seesCommits(one, other))) return 'READ COMMITTED does not see what another session committed'
  return undefined
}

/** A pooler in statement mode ends a session that begins a transaction. */
async function requireTransactions(client: pg.Client): Promise<void> {
  await client.query('begin').catch((error) => {
    if (error.code !== '08P01') throw unreachable(error)
    throw new StartError(
      'pooler_statement_mode',
      'The database URL leads through a connection pooler in statement mode, which allows no transactions. Set its mode to transaction or session.',
      78,
    )
  })
  await client.query('rollback')
}

async function requireLimits(options: Options, client: pg.Client): Promise<void> {
  const limits = limitsOf(options)
  const { judge } = createAdmission(limits, createClock(), () => {})
  await judge(client).catch((error) => {
    if (!(error instanceof Unfit) || error.why !== 'settings') throw error
    throw new StartError(
      'limits_not_in_force',
      `A connection pooler, or the role, overrides the settings of a connection: ${error.message}. As an owner of the role, run these statements with its name, then let the pooler reconnect (\`reconnect\` in the console of PgBouncer):\n${roleSettings('ROLE', limits)}`,
      78,
    )
  })
}

/** One for signals, one for short reads, one of the pool: with fewer, a node would start and never be ready. */
const connectionsMin = 3

async function requireConnections(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ whose: string; allowed: number }>(
    `select whose, allowed from (${connectionLimits}) limits where allowed < ${connectionsMin}`,
  )
  const [short] = rows
  if (short)
    throw new StartError(
      'connections_short',
      `The ${short.whose} allows ${short.allowed} connections, but a node needs ${connectionsMin} at least, and up to CELLKEEP_DATABASE_POOL_MAX + 4. Run \`alter ${short.whose} connection limit N\` as an administrator, with a larger N.`,
      3,
    )
}

/** The connection limits of the role and of the database, where they have one. Superusers are not held to them. */
export const connectionLimits = `
  select format('role %I', rolname) as whose, rolconnlimit as allowed
    from pg_roles where rolname = session_user and rolconnlimit >= 0 and not rolsuper
   union all
  select format('database %I', datname), datconnlimit
    from pg_database, pg_roles
   where datname = current_database() and datconnlimit >= 0 and rolname = session_user and not rolsuper`

/** Runs `work` on two sessions. Rejects with a StartError if they cannot be opened. */
export async function withTwo<T>(
  options: Options,
  connection: Connection,
  work: (one: pg.Client, other: pg.Client) => Promise<T>,
): Promise<T> {
  const { judgeServer } = createAdmission(limitsOf(options), createClock(), () => {})
  const open = (): Promise<pg.Client> =>
    dial({ connection, config: (one) => configOf(one, options), judge: judgeServer }).catch((error) => {
      throw unreachable(error)
    })
  const one = await open()
  try {
    const other = await open()
    return await work(one, other).finally(() => other.end().catch(() => {}))
  } finally {
    await one.end().catch(() => {})
  }
}

async function sharesLocks(one: pg.Client, other: pg.Client): Promise<boolean> {
  const key = randomBytes(6).readUIntBE(0, 6)
  const take = async (client: pg.Client): Promise<boolean> =>
    (await client.query(`select pg_try_advisory_lock(${key}) as held`)).rows[0].held
  const [first, second] = [await take(one), await take(other)]
  // A pooler keeps its sessions, and their locks. Unlocking a lock that is not held would write a warning to the server
  // log.
  if (first) await one.query(`select pg_advisory_unlock(${key})`)
  if (second) await other.query(`select pg_advisory_unlock(${key})`)
  return first && second
}

async function undoesTables(client: pg.Client): Promise<boolean> {
  const name = `ck_probe_${randomBytes(6).toString('hex')}`
  await client.query(`begin read write; create table ${name} (id integer); rollback`)
  return (await client.query(`select to_regclass('${name}') is null as undone`)).rows[0].undone
}

async function seesCommits(one: pg.Client, other: pg.Client): Promise<boolean> {
  const version = async (): Promise<string> =>
    (await one.query('select xmin::text as version from cluster')).rows[0].version
  await one.query('begin isolation level read committed')
  const before = await version()
  // Nothing changes, so there is no need to wait for a standby, nor for another session that holds the row.
  const results: unknown = await other.query(`
    begin read write; set local synchronous_commit = off;
    update cluster set salt = salt where ctid = (select ctid from cluster for update skip locked);
    commit`)
  const [, , { rowCount }] = results as [unknown, unknown, pg.QueryResult]
  const after = await version()
  await one.query('commit')
  return rowCount === 0 || before !== after
}
