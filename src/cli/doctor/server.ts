import { type Database, sql } from '../../db/db.ts'
import { expectedColumns } from '../../db/migration/expected-columns.ts'
import { withClient } from '../../db/migration/migrate.ts'
import { bloatedIndexes, reindex, withPartitions } from '../../db/reindex.ts'
import type { Opened } from '../with-service.ts'
import type { Finding, Fix } from './finding.ts'

/** Smaller tables and indexes are not worth a finding: 4 MB. */
const pagesMin = 512

/** Findings about the database server: durability, standbys, maintenance and backups. */
export async function serverFindings(db: Database, opened: Opened): Promise<Finding[]> {
  const tables = sql`array${sql.raw(withPartitions(`'{${[...expectedColumns().keys()]}}'::regclass[]`))}`
  const server = await db.readOnly.one<Server>(sql`
    select current_setting('fsync') as fsync, current_setting('full_page_writes') as full_page_writes,
      current_setting('autovacuum') as autovacuum, current_setting('synchronous_commit') as synchronous_commit,
      current_setting('synchronous_standby_names') <> '' as wants_synchronous,
      array(select sync_state from pg_stat_replication r where state = 'streaming'
        and not exists (select from pg_replication_slots s where s.active_pid = r.pid and slot_type = 'logical')) as standbys,
      pg_has_role('pg_read_all_stats', 'usage') as sees_standbys,
      (select extract(epoch from clock_timestamp() - min(query_start))::float8 from pg_stat_activity
        where wait_event = 'SyncRep' and clock_timestamp() - query_start > interval '2 seconds') as unconfirmed_s,
      (select greatest(age(datfrozenxid), mxid_age(datminmxid)) from pg_database
        where datname = current_database()) as age,
      server_timeline() as timeline,
      greatest((select timeline from audit_position),
        (select upper(max(lpad(to_hex((info->>'timeline')::int), 8, '0'))) from node)) as known_timeline,
      array(select c.oid::regclass::text from pg_class c join pg_depend d on d.objid = c.oid and d.deptype in ('a', 'i')
        where c.relkind = 'S' and c.relpersistence = 'u' and d.refobjid = any(${tables})) as unlogged,
      array(select c.oid::regclass::text from pg_class c where c.oid = any(${tables})
        and 'autovacuum_enabled=false' = any(c.reloptions)) as unvacuumed,
      -- A promoted standby has counted no live row yet; the catalog knows them of the primary.
      array(select s.relname::text from pg_stat_user_tables s join pg_class c on c.oid = s.relid
        where s.relid = any(${tables})
        and n_dead_tup > greatest(10000, 0.3 * (greatest(n_live_tup, c.reltuples) + n_dead_tup)) order by 1) as bloated,
      -- To read the size of a table, one waits for its lock.
      array(select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.oid = any(${tables}) and c.relkind = 'r' and case when exists (
            select from pg_locks l where l.relation = c.oid and l.mode = 'AccessExclusiveLock'
              and l.database = (select oid from pg_database where datname = current_database())
          ) then false else pg_relation_size(c.oid) >= ${sql.raw(pagesMin)} * 8192 end
        and not exists (select from pg_stats s where s.schemaname = n.nspname and s.tablename = c.relname)
        order by 1) as unanalyzed,
      extract(day from now() - greatest(
        (select coalesce(backed_up_at, (select min(applied_at) from schema_migration)) from cluster),
        (select last_archived_time from pg_stat_archiver)))::int as backup_days`)
  return [
    ...durability(server),
    ...replication(server),
    ...upkeep(server, opened),
    ...statistics(server, opened),
    ...(await bloat(server, opened)),
    ...backups(server),
  ]
}

type Server = {
  fsync: string
  full_page_writes: string
  autovacuum: string
  synchronous_commit: string
  wants_synchronous: boolean
  /** The `sync_state` of each streaming standby. */
  standbys: string[]
  /** False: the database user lacks the right to see standbys, so an empty list means nothing. */
  sees_standbys: boolean
  /** How long a commit has been waiting for a standby; null if none has for more than 2 s. */
  unconfirmed_s: number | null
  age: number
  timeline: string | null
  known_timeline: string | null
  unlogged: string[]
  unvacuumed: string[]
  bloated: string[]
  /** Without statistics. */
  unanalyzed: string[]
  backup_days: number
}

function durability({ fsync, full_page_writes, synchronous_commit }: Server): Finding[] {
  const findings: Finding[] = []
  const off = [fsync === 'off' && 'fsync', synchronous_commit === 'off' && 'synchronous_commit'].filter(
    Boolean,
  )
  if (off.length > 0)
    findings.push({
      finding: 'fsync_off',
      what: `${off.join(' and ')} of the database server ${off.length > 1 ? 'are' : 'is'} off: a crash loses acknowledged writes${fsync === 'off' ? ', or the whole database' : ''}.`,
      remedy: `Run \`${off.map((name) => `alter system set ${name} = on;`).join(' ')} select pg_reload_conf();\` as its administrator. If this does not help, look for ${off.join(' and ')} in its configuration, its start-up options, and the settings of the role and the database, which \`\\drds\` in psql shows.`,
    })
  if (full_page_writes === 'off')
    findings.push({
      finding: 'full_page_writes_off',
      what: 'full_page_writes of the database server is off: a power failure can leave half-written pages.',
      remedy:
        'Unless the file system writes 8 kB pages atomically, run `alter system set full_page_writes = on; select pg_reload_conf();`.',
    })
  return findings
}

function replication(server: Server): Finding[] {
  const { standbys, sees_standbys, unconfirmed_s, wants_synchronous } = server
  const { synchronous_commit, timeline, known_timeline } = server
  const findings: Finding[] = []
  const waits = synchronous_commit !== 'local' && synchronous_commit !== 'off'
  if (standbys.length > 0 && !(wants_synchronous && waits))
    findings.push({
      finding: 'replication_asynchronous',
      what: 'Commits do not wait for a standby, so a fail-over may lose the newest acknowledged writes.',
      remedy:
        'Set synchronous_mode in Patroni, or synchronous_standby_names without it, with synchronous_commit = on. Or accept the loss.',
    })
  const isConfirmed = standbys.some((state) => state === 'sync' || state === 'quorum')
  if (wants_synchronous && waits && sees_standbys && (!isConfirmed || unconfirmed_s !== null))
    findings.push({
      finding: 'no_synchronous_standby',
      what: isConfirmed
        ? `A standby of synchronous_standby_names is connected, but confirms nothing: a commit has been waiting for ${Math.round(unconfirmed_s ?? 0)} s. Mutations wait until they time out.`
        : 'No standby of synchronous_standby_names is connected, so every mutation waits until it times out.',
      remedy: `${isConfirmed ? 'Repair the standby, or the network to it' : 'Start a standby'}. To let writes go on without one until then, empty synchronous_standby_names.`,
    })
  if (timeline !== null && known_timeline !== null && timeline < known_timeline)
    findings.push({
      finding: 'timeline_went_back',
      what: `The database server is on timeline ${timeline}, but a node has seen ${known_timeline}: this is a primary that was replaced, or a restored one.`,
      remedy:
        'Find the primary of the later timeline before anything is written here. If this server is the right one, restart every node.',
    })
  return findings
}

/** PostgreSQL refuses writes at about two billion. */
const ageMax = 500_000_000

function upkeep({ autovacuum, unvacuumed, age, unlogged }: Server, opened: Opened): Finding[] {
  const findings: Finding[] = []
  if (autovacuum === 'off' || unvacuumed.length > 0)
    findings.push({
      finding: 'autovacuum_off',
      what: `autovacuum is off${autovacuum === 'off' ? '' : ` for ${unvacuumed.join(', ')}`}, so tables grow and query plans get worse.`,
      remedy:
        autovacuum === 'off'
          ? 'Run `alter system set autovacuum = on; select pg_reload_conf();` as administrator of the database server.'
          : 'Run `alter table … reset (autovacuum_enabled)` for each.',
      ...(autovacuum !== 'off' && {
        fix: statements(
          opened,
          unvacuumed.map((table) => `alter table ${table} reset (autovacuum_enabled)`),
        ),
      }),
    })
  if (age > ageMax)
    findings.push({
      finding: 'wraparound_near',
      what: `The oldest unfrozen row is ${Math.floor(age / 1_000_000)} million transactions old. At 2,000 million the database refuses writes.`,
      remedy:
        'Run `vacuum (freeze)` in this database, and end what holds vacuum back: old transactions, prepared transactions, replication slots.',
    })
  if (unlogged.length > 0)
    findings.push({
      finding: 'unlogged_sequence',
      what: `These sequences are unlogged: ${unlogged.join(', ')}. After a fail-over they are broken, and every insert that needs one fails.`,
      remedy: 'Run `alter sequence … set logged` for each.',
      fix: statements(
        opened,
        unlogged.map((sequence) => `alter sequence ${sequence} set logged`),
      ),
    })
  return findings
}

/** `pg_upgrade` to PostgreSQL 17 or older leaves the statistics behind, and autovacuum does not miss them. */
function statistics({ unanalyzed }: Server, opened: Opened): Finding[] {
  if (unanalyzed.length === 0) return []
  return [
    {
      finding: 'statistics_missing',
      what: `The query planner has no statistics of ${unanalyzed.join(', ')}: calls may read whole tables.`,
      remedy: 'Run `analyze`, as after every `pg_upgrade`.',
      fix: statements(
        opened,
        unanalyzed.map((table) => `analyze ${table}`),
      ),
    },
  ]
}

async function bloat({ bloated }: Server, opened: Opened): Promise<Finding[]> {
  const { connection } = opened
  const indexes = await withClient(connection, (client) =>
    bloatedIndexes(client, [...expectedColumns().keys()], pagesMin),
  )
  if (bloated.length + indexes.length === 0) return []
  const vacuum = statements(
    opened,
    bloated.map((table) => `vacuum (analyze) ${table}`),
  )
  const names = indexes.map(({ index }) => index)
  return [
    {
      finding: 'bloat',
      what: `More than 30 % of the space is unused in ${[...bloated.map((table) => `table ${table}`), ...names.map((name) => `index ${name}`)].join(', ')}.`,
      remedy:
        'Run `vacuum (analyze) TABLE`, which frees the space of tables for new rows, and `cellkeep reindex`, which shrinks indexes.',
      fix: {
        does: [vacuum.does, names.length > 0 && 'cellkeep reindex'].filter(Boolean).join('; '),
        run: async () => {
          await vacuum.run()
          if (names.length > 0)
            await reindex(connection, { onWait: () => {}, around: (_index, work) => work() })
        },
      },
    },
  ]
}

const backupDays = 7

function backups({ backup_days }: Server): Finding[] {
  if (backup_days < backupDays) return []
  return [
    {
      finding: 'backup_old',
      what: `There has been no backup for ${backup_days} days: \`cellkeep backup\` has not succeeded, and the write-ahead log was not archived.`,
      remedy: 'Run `cellkeep backup FILE` every day. docs/backup.md tells how to verify a backup.',
    },
  ]
}

/** Runs the statements, one after the other. */
const statements = ({ connection }: Opened, texts: readonly string[]): Fix => ({
  does: texts.join('; '),
  run: () =>
    withClient(connection, async (client) => {
      for (const text of texts) await client.query(text)
    }),
})
