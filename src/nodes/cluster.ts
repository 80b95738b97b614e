import { type Queryable, sql } from '../db/db.ts'

/** The database that the nodes share, and its activity. */
export type ClusterView = {
  /** Address of the server that answered, and its version. */
  server: string
  version: string
  is_standby: boolean
  /** Null if the server does not report it. */
  timeline: string | null
  replicas: number
  synchronous: number
  /** How far the slowest replica is behind; null without one, or without the right to read it. */
  lag_s: number | null
  connections: { all: number; max: number; active: number; waiting: number }
  /** The age of the oldest open transaction. */
  oldest_s: number | null
  /** Audit rows that wait for their number, counted to 1000. */
  backlog: number
  steps: number
  /** Periodic work and commands that hold a connection of their own. */
  jobs: string[]
}

export async function readCluster(db: Pick<Queryable, 'one'>): Promise<ClusterView> {
  const view = await db.one<Omit<ClusterView, 'timeline'>>(sql`
    select coalesce(host(inet_server_addr()) || ':' || inet_server_port(), 'a local socket') as server,
      current_setting('server_version') as version, pg_is_in_recovery() as is_standby,
      r.replicas, r.synchronous, r.lag_s, a.oldest_s, a.jobs,
      json_build_object('all', a.all, 'max', current_setting('max_connections')::int, 'active', a.active,
        'waiting', a.waiting) as connections,
      (select count(*) from (select from audit_inbox limit 1000) waiting) as backlog,
      (select count(*) from schema_migration) as steps
    from (
      select count(*) as replicas, count(*) filter (where sync_state in ('sync', 'quorum')) as synchronous,
        round(extract(epoch from max(replay_lag)), 1)::float8 as lag_s
      from pg_stat_replication
    ) r, (
      select count(*) as all, count(*) filter (where state = 'active') as active,
        count(*) filter (where wait_event_type = 'Lock') as waiting,
        round(extract(epoch from max(now() - xact_start)), 1)::float8 as oldest_s,
        coalesce(array_agg(distinct substr(application_name, 10) order by substr(application_name, 10))
          filter (where application_name ~ '^cellkeep (?!bus$)' and datname = current_database()), '{}') as jobs
      from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()
    ) a`)
  // Some hosted servers have none of these functions.
  const known = await db
    .one<{ timeline: string }>(sql`select left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) as timeline`)
    .catch(() => null)
  return { ...view, timeline: known?.timeline ?? null }
}
