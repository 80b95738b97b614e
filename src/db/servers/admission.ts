import pg from 'pg'
import type { Clock } from '../clock.ts'
import { relied, searchPath } from './connection.ts'
import { Unfit } from './unfit.ts'

export type Admission = {
  /** Asks a server who it is, in one round trip; rejects with `Unfit` if it is not the one to use. */
  judge(client: pg.Client): Promise<void>
  /** The same for a session with its own time limits. */
  judgeServer(client: pg.Client): Promise<void>
  /** The timeline of the servers admitted so far; null if the server does not reveal it. */
  readonly timeline: number | null
  readonly cluster: string | null
}

/** The settings that every connection must have, with their values. */
export type Limits = { statementMs: number; idleMs: number; schema: string | undefined }

export type InForce = { statement_s: number; idle_s: number; zone: string; path: string; relied: boolean[] }
type Answer = InForce & {
  in_recovery: boolean
  timeline: string | null
  cluster: string | null
  clock_ms: number
}

/** Timeline and cluster are kept in memory only: after a restart the process accepts the database that it finds. */
export function createAdmission(
  limits: Limits,
  clock: Clock,
  onLater: (timeline: number) => void,
): Admission {
  let known: { timeline: number | null; cluster: string | null } = { timeline: null, cluster: null }
  let hasWal = true

  const ask = async (client: pg.Client, hasCluster = true): Promise<Answer & { read_only: boolean }> => {
    try {
      return await askWithMode<Answer>(client, question(hasWal, hasCluster))
    } catch (error) {
      const { code = '' } = error as pg.DatabaseError
      // Undefined table: not migrated. Other errors of the statement: an engine without these functions.
      if (code === '42P01' && hasCluster) return await ask(client, false)
      if (!/^(42|0A)/.test(code) || !hasWal) throw error
      hasWal = false
      return await ask(client, hasCluster)
    }
  }

  const judge = async (client: pg.Client, hasLimits: boolean): Promise<void> => {
    const sentAt = performance.now()
    const answer = await ask(client)
    const timeline = answer.timeline === null ? null : Number.parseInt(answer.timeline, 16)
    if (answer.in_recovery) throw new Unfit('read_only', 'the server is a standby')
    if (timeline !== null && known.timeline !== null && timeline < known.timeline)
      throw new Unfit(
        'timeline',
        `the server is on timeline ${timeline}, older than ${known.timeline}, so it is a primary that was replaced, or a restored one. To accept it, restart this process`,
      )
    // Without its search_path a session sees no table either: then that is what the operator has to know.
    if (hasLimits && answer.cluster === null) requireLimits(answer, limits)
    if (known.cluster !== null && answer.cluster !== known.cluster)
      throw new Unfit(
        'cluster',
        answer.cluster === null
          ? 'the database no longer has the tables of this service: it is empty or a foreign one. Set the URL to the former one, or, to accept this one, restart this process'
          : 'the server holds another database than before, a restored or foreign one. To accept it, restart this process',
      )
    if (hasLimits) requireLimits(answer, limits)
    if (answer.read_only) throw new Unfit('read_only', 'the database is set to read-only')
    clock.measured(answer.clock_ms, sentAt)
    const isLater = timeline !== null && timeline > (known.timeline ?? timeline)
    known = { timeline: timeline ?? known.timeline, cluster: answer.cluster ?? known.cluster }
    if (isLater) onLater(timeline)
  }
  return {
    judge: (client) => judge(client, true),
    judgeServer: (client) => judge(client, false),
    get timeline() {
      return known.timeline
    },
    get cluster() {
      return known.cluster
    },
  }
}

/**
 * Our sessions override `default_transaction_read_only`, so it is looked up where the operator sets it: for the role,
 * the database or the server.
 */
export const readOnlyDefault = `coalesce(
  (select split_part(setting, '=', 2) from pg_db_role_setting, unnest(setconfig) setting
    where setting like 'default_transaction_read_only=%'
      and setdatabase in (0, (select oid from pg_database where datname = current_database()))
      and setrole in (0, (select oid from pg_roles where rolname = session_user))
    order by setrole = 0, setdatabase = 0 limit 1),
  (select reset_val from pg_settings where name = 'default_transaction_read_only'))::boolean`

const timelineOf = `case when not pg_is_in_recovery()
  then left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) end`

const seconds = (name: string): string => `extract(epoch from current_setting('${name}')::interval)::float8`

const question = (hasWal: boolean, hasCluster: boolean): string =>
  `pg_is_in_recovery() as in_recovery,
  ${hasWal ? timelineOf : 'null'} as timeline,
  ${hasCluster ? '(select id::text from cluster)' : 'null'} as cluster,
  extract(epoch from clock_timestamp())::float8 * 1000 as clock_ms,
  ${inForce}`

export const inForce = `${seconds('statement_timeout')} as statement_s,
  ${seconds('idle_in_transaction_session_timeout')} as idle_s,
  current_setting('TimeZone') as zone, current_setting('search_path') as path,
  array[${Object.entries(relied).map(([name, { holds }]) => `current_setting('${name}') ${holds}`)}] as relied`

const wanted = ({ statementMs, idleMs, schema }: Limits): string[] => [
  `statement_timeout = '${statementMs}ms'`,
  `idle_in_transaction_session_timeout = '${idleMs}ms'`,
  `timezone = 'UTC'`,
  ...Object.entries(relied).map(([name, { value }]) => `${name} = '${value}'`),
  ...(schema === undefined
    ? []
    : [`search_path = ${searchPath(schema).split(',').map(pg.escapeIdentifier)}`]),
]

export function requireLimits(answer: InForce, limits: Limits): void {
  const { statement_s, idle_s, zone, path, relied: holds } = answer
  const first = path.split(',')[0]?.replaceAll('"', '')
  const isRight = [
    Math.round(statement_s * 1000) === limits.statementMs,
    Math.round(idle_s * 1000) === limits.idleMs,
    zone === 'UTC',
    ...holds,
    first === limits.schema,
  ]
  const wrong = wanted(limits).filter((_, index) => !isRight[index])
  if (wrong.length > 0) throw new Unfit('settings', `not in force: ${wrong.join('; ')}`)
}

/** The statements that put the limits in force where a pooler drops start-up options. */
export const roleSettings = (role: string, limits: Limits): string =>
  [...wanted(limits), 'jit = off', 'random_page_cost = 1.1']
    .map((setting) => `alter role ${pg.escapeIdentifier(role)} set ${setting};`)
    .join('\n')

/** Accepts any server that takes writes. */
export async function takesWrites(client: pg.Client): Promise<void> {
  const { is_standby, read_only } = await askWithMode<{ is_standby: boolean }>(
    client,
    'pg_is_in_recovery() as is_standby',
  )
  if (is_standby) throw new Unfit('read_only', 'the server is a standby')
  if (read_only) throw new Unfit('read_only', 'the database is set to read-only')
}

type Mode = { read_only: boolean; is_set: boolean }

/**
 * These columns, and `readOnlyDefault` as `read_only`. Planning `readOnlyDefault` costs as much as opening a
 * connection, so it is used only if a role or database has such a setting; otherwise the session's reset value is the
 * answer.
 */
async function askWithMode<T>(client: pg.Client, columns: string): Promise<T & { read_only: boolean }> {
  const answers = await client.query(
    `set local default_transaction_read_only to default;
     select ${columns}, current_setting('default_transaction_read_only')::boolean as read_only,
       exists (select from pg_db_role_setting
               where setconfig::text like '%default_transaction_read_only=%') as is_set`,
  )
  const found = (answers as unknown as pg.QueryResult<T & Mode>[])[1] as pg.QueryResult<T & Mode>
  const answer = found.rows[0] as T & Mode
  if (!answer.is_set) return answer
  const { rows } = await client.query<Mode>(`select ${readOnlyDefault} as read_only`)
  return { ...answer, read_only: rows[0]?.read_only === true }
}
