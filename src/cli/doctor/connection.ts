import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { withClient } from '../../db/migration/migrate.ts'
import { type Blocker, blockerText, endingOf, preparedOf, whoOf } from '../../db/migration/patience.ts'
import { directOf } from '../../db/servers/connection.ts'
import { isDiskFull, nameIsLost } from '../../db/servers/failure.ts'
import { missingFeatures } from '../../db/servers/features.ts'
import { requireSuitable, withTwo } from '../../db/servers/suitable.ts'
import { StartError } from '../../errors.ts'
import type { Opened } from '../with-service.ts'
import type { Finding } from './finding.ts'

/**
 * Transactions that keep all others from writing to a table for longer than a migration or the cleanup does. Nobody
 * waits for `audit_inbox`, about which there is another finding.
 */
const lockers = `
  select l.pid, p.gid, coalesce('user ' || p.owner, ${whoOf}) as application,
    string_agg(distinct c.relname, ', ') as tables,
    extract(epoch from clock_timestamp() - min(coalesce(p.prepared, a.xact_start)))::float8 as seconds
  from pg_locks l join pg_class c on c.oid = l.relation and c.relkind in ('r', 'p')
    left join pg_stat_activity a on a.pid = l.pid
    left join ${preparedOf}
  where l.granted and l.locktype = 'relation' and l.database = (select oid from pg_database where datname = current_database())
    and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    and c.relnamespace = current_schema()::regnamespace and c.relname <> 'audit_inbox'
    and (p.gid is not null or a.usesysid is not null) -- autovacuum gives way by itself
    and coalesce(clock_timestamp() - coalesce(p.prepared, a.xact_start) > interval '2 seconds', true)
  group by l.pid, p.gid, p.owner, a.application_name, a.backend_type, a.usename order by l.pid, p.gid`

/** Calls wait for these tables, and so would every other check. */
export async function lockFindings({ connection }: Opened): Promise<Finding[]> {
  const { rows } = await withClient(connection, (client) =>
    client.query<Blocker & { tables: string }>(lockers),
  )
  return rows.map(({ tables, ...blocker }) => ({
    finding: 'table_locked',
    what: `A lock on ${tables} is held by ${blockerText(blocker)}. Calls that need it wait, and are then refused with timeout.`,
    remedy: `Let it end, or run \`${endingOf(blocker)}\`. Then run \`cellkeep doctor\` again: it could not check the rest of the database.`,
  }))
}

/** Why no node can start with this connection to the database, or on this engine. */
export async function connectionFindings(opened: Opened): Promise<Finding[]> {
  try {
    await requireSuitable(optionsOf(opened))
    return []
  } catch (error) {
    if (isDiskFull(error)) return fullDisk(opened)
    if (!(error instanceof StartError) || error.reason === 'db_unreachable') throw error
    return [{ finding: error.reason, what: error.message, remedy: 'Until this is resolved, no node starts.' }]
  }
}

/** What the engine, or a pooler in front of it, lacks although nodes can start. */
export async function featureFindings(opened: Opened): Promise<Finding[]> {
  const { config, connection } = opened
  const findings: Finding[] = []
  let missing: string[] = []
  try {
    missing = await withTwo(optionsOf(opened), directOf(connection), missingFeatures)
  } catch (error) {
    if (!isDiskFull(error)) throw error
    findings.push(...fullDisk(opened))
  }
  if (missing.length > 0)
    findings.push({
      finding: 'db_feature_missing',
      what: `The database server lacks ${missing.join('; ')}. The server starts, but whatever needs this fails.`,
      remedy: 'Move to PostgreSQL 15 to 18: run `cellkeep backup` here, then `cellkeep restore` there.',
    })
  if (config.database_statements === 'named' && (await withTwo(optionsOf(opened), connection, losesNames)))
    findings.push({
      finding: 'statement_names_lost',
      what: 'A connection pooler loses prepared statements, so many statements are sent twice.',
      remedy:
        'Set CELLKEEP_DATABASE_STATEMENTS=unnamed on every node, or let the pooler track prepared statements (PgBouncer 1.21 or newer, `max_prepared_statements = 400`).',
    })
  return findings
}

/** The check writes, so it finds a full disk. For an embedded database that is already a finding about the data dir. */
const fullDisk = ({ config }: Opened): Finding[] =>
  config.database_url === null && config.disk_reserve !== null
    ? []
    : [
        {
          finding: 'disk_full',
          what: 'The disk of the database is full, so writes are refused.',
          remedy:
            'Free space: remove other files, enlarge the disk, or lower CELLKEEP_CELL_TOMBSTONE_RETENTION_DAYS and CELLKEEP_AUDIT_RETENTION_DAYS to delete old rows sooner.',
        },
      ]

const optionsOf = ({ config, connection }: Opened) => ({
  connection,
  statementTimeoutMs: config.statement_timeout_ms,
})

const aloneMs = 1_000

/** Behind a transaction pooler, a session meets prepared statements of another, or misses its own. */
async function losesNames(one: pg.Client, other: pg.Client): Promise<boolean> {
  const ask = (client: pg.Client) => client.query({ name: 'ck_probe', text: 'select 1' })
  try {
    for (const client of [one, other, one]) await ask(client)
    // A transaction of the other session keeps the pooler from giving us the same server connection again. If the
    // pooler has only that one, the statement waits for the commit.
    await other.query('begin')
    const asked = ask(one)
    await Promise.race([asked, delay(aloneMs)]).finally(() => other.query('commit'))
    await asked
    return false
  } catch (error) {
    if (!nameIsLost(error)) throw error
    return true
  }
}
