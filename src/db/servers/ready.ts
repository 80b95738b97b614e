import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Log } from '../../log/log.ts'
import { type Database, type Sql, sql } from '../db.ts'
import { type ExpectedColumns, expectedColumns, requireColumns } from '../migration/expected-columns.ts'
import { namesOf, readSteps, type Step } from '../migration/steps.ts'
import { readOnlyDefault } from './admission.ts'
import type { Trouble } from './breaker.ts'

export type ReadyState = { ready: true } | { ready: false; reason: 'schema_drift' | Trouble; sinceMs: number }

export type Readiness = {
  check(): Promise<ReadyState>
  /** The same, but resolves to the previous answer if the database does not answer soon: balancers do not wait. */
  recent(): Promise<ReadyState>
  /** The newest answer; undefined before the first. */
  readonly latest: ReadyState | undefined
  /** The service closes its connections: what fails from now on is not logged. */
  end(): void
}

type ReadinessOptions = {
  /** Default: every table of schema.sql. */
  expected?: ExpectedColumns
  /** Default: those of this version. */
  steps?: readonly Step[]
  /** Gets `schema_newer` while the database has migrations that this version does not know. */
  warnings?: { add(word: 'schema_newer'): unknown; delete(word: 'schema_newer'): unknown }
  log?: Pick<Log, 'error'>
  /** Milliseconds that never go back. */
  now?: () => number
}

/** All probes within this time share one check. */
const intervalMs = 2_000
const queryLimitMs = 2_000
/** Less than any balancer of packaging/ waits. */
const soonMs = 400

/**
 * Checks that the database answers, takes writes and has every column and expanding migration of this version, and
 * that the user may write. What is missing is only logged, once per change. Throws a StartError if there is nothing to
 * compare with.
 */
export function createReadiness(
  db: Pick<Database, 'point' | 'primary'>,
  options: ReadinessOptions = {},
): Readiness {
  const {
    expected = expectedColumns(),
    steps = readSteps(),
    warnings,
    log,
    now = () => performance.now(),
  } = options
  requireColumns(expected)
  const query = missing(expected, steps)
  let last: { at: number; answer: Promise<ReadyState> } | undefined
  let latest: ReadyState | undefined
  let logged = ''
  let failing: { since: number } | undefined
  let isOver = false

  const failed = (reason: 'schema_drift' | Trouble, detail: Record<string, unknown>): ReadyState => {
    const text = JSON.stringify([reason, detail.missing])
    if (text !== logged && !isOver)
      log?.error({ event: 'db_not_ready', ready: false, reason, ...detail }, 'the database is not ready')
    logged = text
    failing ??= { since: now() }
    return { ready: false, reason, sinceMs: now() - failing.since }
  }
  const ask = async (): Promise<ReadyState> => {
    const { trouble } = db.primary
    if (trouble) return failed(trouble, {})
    try {
      const asked = sql`${query} union all ${otherThan(db.primary.admission.cluster)}`
      const rows = await within(queryLimitMs, db.point<{ missing: string }>(asked))
      const found = rows.map((row) => row.missing)
      if (found.includes(other)) {
        db.primary.doubt()
        return failed('db_other_database', {})
      }
      if (found.includes(writes)) {
        db.primary.doubt()
        return failed('db_read_only', {})
      }
      const missing = found.filter((one) => one !== newer)
      warnings?.[missing.length < found.length ? 'add' : 'delete'](newer)
      if (missing.length > 0) return failed('schema_drift', { missing })
      failing = undefined
      logged = ''
      return { ready: true }
    } catch (err) {
      // Class 42: a table or column of the query does not exist or may not be read.
      const drift = err instanceof pg.DatabaseError && err.code?.startsWith('42')
      // Perhaps all tables are gone. Then the calls need not fail one by one.
      if (drift) db.primary.doubt()
      return failed(drift ? 'schema_drift' : (db.primary.trouble ?? 'db_unreachable'), { err })
    }
  }

  const look = async (): Promise<ReadyState> => {
    latest = await ask()
    return latest
  }

  const check = (): Promise<ReadyState> => {
    if (last === undefined || now() - last.at >= intervalMs) last = { at: now(), answer: look() }
    return last.answer
  }
  return {
    check,
    recent: async () => {
      const before = latest
      const asked = check()
      return before === undefined
        ? await asked
        : await Promise.race([asked, delay(soonMs, before, { ref: false })])
    },
    get latest() {
      return latest
    },
    end: () => {
      isOver = true
    },
  }
}

const writes = 'writes'
const newer = 'schema_newer'
const other = 'other database'

/**
 * Returns a row if the tables have been replaced by those of another database, such as a restored one. The open
 * connections would go on and use them.
 */
const otherThan = (cluster: string | null): Sql => sql`
  select ${other} where ${cluster}::text is not null and not exists (select from cluster where id::text = ${cluster})`

/** Tables that every working node writes to: where privileges were revoked, it is hardly ever from one table only. */
const written = ['account', 'audit_inbox', 'auth_session', 'cell']

/** Returns a row for each missing thing. Finds tables through the search path, as every other statement does. */
function missing(expected: ExpectedColumns, steps: readonly Step[]): Sql {
  const columns = [...expected].flatMap(([table, of]) => of.map((column) => ({ table, column })))
  return sql`
    select 'column ' || table_name || '.' || column_name as missing
      from unnest(${columns.map(({ table }) => table)}::text[], ${columns.map(({ column }) => column)}::text[])
           as expected (table_name, column_name)
     where not exists (
             select from pg_attribute
              where attrelid = to_regclass(table_name) and attname = column_name)
     union all
    select 'migration ' || known
      from unnest(${namesOf(steps.filter(({ kind }) => kind === 'expand'))}::text[]) known
     where not exists (select from schema_migration where name = known)
     union all
    select 'privilege to insert into ' || name from unnest(${written}::text[]) name
     where not has_any_column_privilege(to_regclass(name), 'insert')
     union all
    select ${writes} where ${sql.raw(readOnlyDefault)}
     union all
    select ${newer} where exists (select from schema_migration where name <> all (${namesOf(steps)}::text[]))`
}

async function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`no answer in ${limitMs} ms`)), limitMs)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
    work.catch(() => undefined)
  }
}
