import { createHash } from 'node:crypto'
import { open, rm } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import type pg from 'pg'
import { connect, migrate } from '../db/migration/migrate.ts'
import { readRecords } from '../db/migration/records.ts'
import type { Connection } from '../db/servers/connection.ts'
import { codeOf, databaseRefusal } from '../db/servers/failure.ts'
import { StartError } from '../errors.ts'
import { syncName } from '../files/private-file.ts'
import { unwritable } from '../files/unwritable.ts'
import { copyOut } from './copy-out.ts'
import {
  backedUpTables,
  type End,
  marker,
  type NewHeader,
  presentTables,
  quoted,
  storedColumns,
  type TableEnd,
  type TableStart,
} from './format.ts'
import { yieldBehind } from './priority.ts'
import { onStandby } from './standby.ts'
import { paced, zipped } from './zipped.ts'

type BackedUp = { tables: number; rows: number; bytes: number }
/** Called with the rows written so far, their estimated total and the table being read. */
type OnRows = (written: number, of: number, table: string) => void

type BackupOptions = {
  /** A new file, or a stream that stays open. */
  to: string | Writable
  version: string
  onRows?: OnRows
  /** The first usable one of these standbys supplies the snapshot. */
  standbys?: readonly Connection[]
  /** The server runs on this machine as this user, so that its work for the backup can get a lower priority. */
  isOwnServer?: boolean
  /** Max bytes per second, before compression; default: as fast as possible. */
  maxRate?: number | undefined
  /** Aborting it ends the backup at once, like a failure. */
  interrupt?: AbortSignal
}

/**
 * Writes a consistent dump of the service's tables from one snapshot, while the service may run. The file has
 * mode 0600, must not exist yet, and is removed on failure. Pending migrations are allowed, so that a backup can
 * be made before an upgrade. Rejects with StartError.
 */
export async function writeBackup(
  connection: Connection,
  { to, version, onRows = () => {}, standbys, isOwnServer, maxRate, interrupt }: BackupOptions,
): Promise<BackedUp> {
  await migrate(connection, { mode: 'check' }).catch((error) => {
    if (!(error instanceof StartError) || error.reason !== 'migration_pending') throw error
  })
  const primary = await connect(connection, name)
  let client = primary
  const cut = (): void => {
    for (const one of new Set([primary, client])) void one.end().catch(() => undefined)
  }
  interrupt?.addEventListener('abort', cut, { once: true })
  try {
    interrupt?.throwIfAborted()
    if (isOwnServer) await yieldBehind(primary)
    const timeline = await timelineOf(primary)
    if (standbys) client = await onStandby(primary, standbys, name, interrupt)
    await beginLocked(client)
    const header = { ...(await headerFor(client, version)), timeline }
    const count = { tables: 0, rows: 0, bytes: 0 }
    const write = async (put: Put): Promise<void> => {
      const pace = paced(maxRate, interrupt)
      for await (const { chunk, of } of zipped(dump(client, header, count, onRows), pace.turnBytes)) {
        count.bytes += chunk.length
        await put(chunk)
        await pace.wait(of)
      }
    }
    await (typeof to === 'string' ? intoFile(to, write) : intoStream(to, write))
    await record(primary)
    return count
  } catch (error) {
    if (client !== primary && codeOf(error) === '40001') throw cancelled(error)
    if (databaseRefusal(error)?.data.reason !== 'service_unavailable') throw error
    const what = 'The connection to the database was lost before the backup was complete. Run it again.'
    throw new StartError('backup_interrupted', what, 1, { cause: error })
  } finally {
    interrupt?.removeEventListener('abort', cut)
    for (const one of new Set([primary, client])) await one.end().catch(() => undefined)
  }
}

const name = 'cellkeep backup'

/**
 * Locks every table before the snapshot is taken. A partition that is dropped, or a table that a migration replaces, is
 * gone from older snapshots too, and its rows would be missing without a trace.
 */
async function beginLocked(client: pg.Client): Promise<void> {
  const tables = await presentTables(client)
  await client.query('begin isolation level repeatable read read only')
  if (tables.length > 0)
    await client.query(`lock table ${tables.map(quoted).join(', ')} in access share mode`)
}

const cancelled = (cause: unknown): StartError =>
  new StartError(
    'backup_interrupted',
    'The replica cancelled the backup to go on replaying. Set hot_standby_feedback = on there and run the backup again, or leave out --from-replica.',
    1,
    { cause },
  )

/**
 * Lets `doctor` warn when the last backup is old. A failure here does not affect the backup, which is complete. The
 * commit waits for no standby.
 */
const record = (client: pg.Client): Promise<unknown> =>
  client
    .query('commit; set synchronous_commit = off; update cluster set backed_up_at = now()')
    .catch(() => undefined)

type Put = (chunk: Buffer) => Promise<void>

const reason = 'backup_unwritable'

async function intoFile(file: string, write: (put: Put) => Promise<void>): Promise<void> {
  const failed = unwritable(file, reason)
  const handle = await open(file, 'wx', 0o600).catch(failed)
  try {
    await handle.chmod(0o600)
    await write((chunk) => handle.appendFile(chunk).catch(failed))
    await handle.sync().catch(failed)
    await handle.close().catch(failed)
    await syncName(file).catch(failed)
  } catch (error) {
    await handle.close().catch(() => undefined)
    await rm(file, { force: true })
    throw error
  }
}

const intoStream = (stream: Writable, write: (put: Put) => Promise<void>): Promise<void> =>
  write((chunk) =>
    new Promise<void>((resolve, reject) => {
      stream.write(chunk, (error) => (error ? reject(error) : resolve()))
    }).catch(unwritable('The output', reason)),
  )

/** Null if a managed server lacks the function. */
const timelineOf = (primary: pg.Client): Promise<string | null> =>
  primary
    .query<{ timeline: string }>('select left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) as timeline')
    .then(
      ({ rows }) => rows[0]?.timeline ?? null,
      () => null,
    )

async function headerFor(client: pg.Client, version: string): Promise<Omit<NewHeader, 'timeline'>> {
  const migrations = await recordedMigrations(client)
  const cluster = await only<string>(client, 'cluster', 'id')
  const audit_seq = await only<string>(client, 'audit_position', 'seq')
  // Some managed servers lack these functions.
  await client.query('savepoint place')
  const lsn = await client
    .query<{ lsn: string }>(
      `select (case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end)::text as lsn`,
    )
    .then(
      ({ rows }) => rows[0]?.lsn ?? null,
      async () => {
        await client.query('rollback to place')
        return null
      },
    )
  const created_at = new Date().toISOString()
  return {
    cellkeep_backup: 2,
    version,
    created_at,
    migrations,
    cluster,
    lsn,
    audit_seq: Number(audit_seq ?? 0),
  }
}

/** The value of a table with one row; null if the table is still missing because a migration is pending. */
async function only<T>(client: pg.Client, table: string, column: string): Promise<T | null> {
  const { rows: found } = await client.query('select to_regclass($1) as id', [table])
  if (found[0].id === null) return null
  const { rows } = await client.query<{ value: T }>(`select ${column} as value from ${table}`)
  return rows[0]?.value ?? null
}

/** Only finished steps: the restore runs the others again. */
async function recordedMigrations(client: pg.Client): Promise<string[]> {
  const records = await readRecords(client)
  if (records.length === 0)
    throw new StartError(
      'nothing_to_back_up',
      'There is nothing to back up: the database has no schema yet. Check that it is the right one.',
      1,
    )
  return records.filter(({ state }) => state === 'done').map(({ name }) => name)
}

async function* dump(
  client: pg.Client,
  header: NewHeader,
  count: BackedUp,
  onRows: OnRows,
): AsyncGenerator<Buffer> {
  const about = await estimatedRows(client)
  const all = createHash('sha256')
  const summed = (text: Buffer): Buffer => {
    all.update(text)
    return text
  }
  const own = (line: NewHeader | TableStart | TableEnd | End): Buffer =>
    Buffer.from(`${marker}${JSON.stringify(line)}\n`)
  yield summed(own(header))
  for (const table of backedUpTables()) {
    const columns = await storedColumns(client, table)
    // A pending migration makes this table.
    if (columns.length === 0) continue
    yield summed(own({ table, columns }))
    count.tables += 1
    const before = count.rows
    const sum = createHash('sha256')
    const list = columns.map(quoted).join(', ')
    const query = `select row_to_json(t)::text from (select ${list} from ${quoted(table)}) t`
    for await (const { text, rows } of copyOut(client, query)) {
      count.rows += rows
      onRows(count.rows, about, table)
      sum.update(text)
      yield summed(text)
    }
    yield summed(own({ table_end: table, rows: count.rows - before, sha256: sum.digest('hex') }))
  }
  yield own({ end: true, rows: count.rows, sha256: all.digest('hex') })
}

/** An estimate from the statistics, because counting would scan every table. */
async function estimatedRows(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ about: number }>(
    `select coalesce(sum(greatest(c.reltuples, 0)), 0)::float8 as about
     from unnest($1::text[]) t (name) join pg_class c on c.oid = to_regclass(t.name)`,
    [backedUpTables().map(quoted)],
  )
  return rows[0]?.about ?? 0
}
