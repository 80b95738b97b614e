import { databaseUrl, databaseUrls, matching, oneOf, orOff, orUnset, path, whole } from './kinds.ts'
import { setting } from './setting.ts'

// Needs no quotes, and leaves room for names derived from it.
const schemaRule = 'a name of 1 to 48 of a-z, 0-9 and _, not starting with a digit or pg_'

/** The part of the table of settings (table.ts) about the database and its connections. */
export const database = {
  database_url: setting(orUnset(databaseUrl()), {
    default: null,
    shown: 'an embedded PostgreSQL under `<data dir>/db`',
    secret: true,
    doc: 'URL of your own PostgreSQL, 15 to 18. It may list several servers, as libpq does: `postgres://user@one,two/db`; the primary among them is used.',
  }),
  database_direct_url: setting(orUnset(databaseUrl()), {
    default: null,
    shown: 'the database URL',
    secret: true,
    doc: 'Needed if `CELLKEEP_DATABASE_URL` leads through a connection pooler in transaction mode: a URL that bypasses it, for signals, locks, migrations and backups.',
  }),
  database_replica_urls: setting(databaseUrls(), {
    default: [],
    shown: 'none',
    secret: true,
    doc: 'URLs of standbys that answer reads, once they have replayed what the primary would answer from; see [operations](operations.md#read-replicas).',
  }),
  replica_lag_max_ms: setting(whole(10, 600_000), {
    default: 1_000,
    doc: 'A replica that is further behind is not used until it has caught up.',
  }),
  database_wait_ms: setting(whole(0, 30_000), {
    default: 5_000,
    doc: 'How long a call may wait for a primary while there is none.',
  }),
  database_statements: setting(oneOf('named', 'unnamed'), {
    default: 'named',
    doc: '`unnamed` is for connection poolers that lose prepared statements; it lowers the throughput of reads by a third.',
  }),
  database_schema: setting(
    orUnset(matching(schemaRule, /^(?!pg_)(?!information_schema$)[a-z_][a-z0-9_]{0,47}$/)),
    {
      default: null,
      shown: '`cellkeep`, or the schema that holds the tables of an earlier version, such as `public`',
      doc: 'Schema of the database for the tables of the service. Services in different schemas of one database are separate.',
    },
  ),
  postgres_bin: setting(orUnset(path('a directory with postgres and initdb')), {
    default: null,
    shown: 'the bundled binaries, else those of `/usr/lib/postgresql/<15 to 18>/bin` or the `PATH`',
    doc: 'PostgreSQL binaries for the embedded database.',
  }),
  disk_reserve: setting(orOff(whole(1_048_576, 1_000_000_000_000, 'bytes')), {
    default: 268_435_456,
    doc: 'Content is refused when the disk of the embedded database has less free space than this, or than a twentieth of the disk if that is less. Below four times as much, a warning is logged.',
  }),
  postgres_user: setting(orUnset(matching('the name of a user', /^[A-Za-z_][\w.-]{0,63}$/)), {
    default: null,
    shown: 'the owner of `<data dir>/db`, else `cellkeep`, `postgres` or `nobody`',
    doc: 'The user that runs the embedded database if the process is root.',
  }),
  database_pool_max: setting(whole(2, 200), { default: 10, doc: 'Max pooled connections per process.' }),
  max_caller_connections: setting(orOff(whole(1, 200)), {
    default: ({ database_pool_max }) => Math.max(2, Math.floor(database_pool_max * 0.8)),
    shown: 'four fifths of the pool, at least 2',
    doc: 'Max pooled connections that one account, or one IP without a credential, uses at once; its other calls wait. One REST route at a time, such as a sign-in, may use one more.',
  }),
  statement_timeout_ms: setting(whole(100, 30_000), {
    default: 10_000,
    doc: 'Time limit of one SQL statement.',
  }),
  migrate: setting(oneOf('auto', 'check'), {
    default: 'auto',
    doc: '`auto` applies the migrations that this version needs at the start, and long ones in the background. `check` applies none, and refuses to start if one that this version needs is pending. See [upgrading](upgrading.md).',
  }),
}
