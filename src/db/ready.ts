import pg from 'pg'
import { type Database, type Sql, sql } from './db.ts'
import { type ExpectedColumns, expectedColumns, requireColumns } from './expected-columns.ts'

export type ReadyState =
  | { ready: true }
  | { ready: false; reason: 'schema_drift' | 'db_unreachable' | 'db_read_only'; sinceMs: number }

export type Readiness = { check(): Promise<ReadyState> }

export type ReadinessOptions = {
  /** Default: every table of schema.sql. */
  expected?: ExpectedColumns
  log?: { error(fields: object, text: string): void }
  /** Milliseconds that never go back. */
  now?: () => number
}

/** All probes within this time share one check. */
const intervalMs = 2_000
const queryLimitMs = 2_000

/**
 * Checks that the database answers, takes writes and has every column and migration that this version knows; extra ones
 * are not drift. `sinceMs` is how long the state has been seen. What is missing goes to the log only, once per change. Throws a StartError if there is
 * nothing to compare with.
 */
export function createReadiness(
  db: Pick<Database, 'point'>,
  names: readonly string[],
  options: ReadinessOptions = {},
): Readiness {
  const { expected = expectedColumns(), log, now = () => performance.now() } = options
  requireColumns(expected)
  const query = missing(expected, names)
  let last: { at: number; answer: Promise<ReadyState> } | undefined
  let logged = ''
  let failing: { reason: string; since: number } | undefined

  const failed = (
    reason: Extract<ReadyState, { ready: false }>['reason'],
    detail: Record<string, unknown>,
  ): ReadyState => {
    const text = JSON.stringify([reason, detail.missing])
    if (text !== logged) log?.error({ ready: false, reason, ...detail }, 'the database is not ready')
    logged = text
    if (failing?.reason !== reason) failing = { reason, since: now() }
    return { ready: false, reason, sinceMs: now() - failing.since }
  }
  const ask = async (): Promise<ReadyState> => {
    try {
      const rows = await within(queryLimitMs, db.point<{ missing: string }>(query))
      const missing = rows.map((row) => row.missing)
      if (missing.includes(writes)) return failed('db_read_only', {})
      if (missing.length > 0) return failed('schema_drift', { missing })
      failing = undefined
      logged = ''
      return { ready: true }
    } catch (err) {
      // Class 42: a table or column of the query doesn't exist or may not be read.
      const drift = err instanceof pg.DatabaseError && err.code?.startsWith('42')
      return failed(drift ? 'schema_drift' : 'db_unreachable', { err })
    }
  }

  return {
    check: () => {
      if (last === undefined || now() - last.at >= intervalMs) last = { at: now(), answer: ask() }
      return last.answer
    },
  }
}

const writes = 'writes'

/** Returns a row for each missing thing. Finds tables through the search path, as every other statement does. */
function missing(expected: ExpectedColumns, names: readonly string[]): Sql {
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
      from unnest(${[...names]}::text[]) known
     where not exists (select from schema_migration where name = known)
     union all
    select ${writes} where pg_is_in_recovery()`
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
