import { open, rm } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type pg from 'pg'
import type { Connection } from '../db/connection.ts'
import { migrate } from '../db/migrate.ts'
import { StartError } from '../errors.ts'
import {
  backedUpTables,
  type End,
  type Header,
  marker,
  openBackupConnection,
  quoted,
  storedColumns,
  type TableStart,
} from './format.ts'

export type BackedUp = { tables: number; rows: number; bytes: number }
/** Called with the rows written so far, and with about how many there are. */
export type OnRows = (written: number, of: number) => void

/**
 * Writes a consistent dump of the service's tables from one snapshot, while the service may run. The file has
 * mode 0600, must not exist yet, and is removed on failure. Pending migrations are allowed, so that a backup can
 * be made before an upgrade. Rejects with StartError.
 */
export async function writeBackup(
  connection: Connection,
  { file, version, onRows = () => {} }: { file: string; version: string; onRows?: OnRows },
): Promise<BackedUp> {
  await migrate(connection, { mode: 'check' }).catch((error) => {
    if (!(error instanceof StartError) || error.reason !== 'migration_pending') throw error
  })
  const client = await openBackupConnection(connection)
  try {
    await client.query('begin isolation level repeatable read read only')
    const migrations = await recordedMigrations(client)
    const handle = await open(file, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
      const why = error.code === 'EEXIST' ? 'it exists already; choose another name' : error.message
      throw new StartError('backup_unwritable', `${file} cannot be written: ${why}.`, 1)
    })
    try {
      await handle.chmod(0o600)
      const count = { tables: 0, rows: 0 }
      const created_at = new Date().toISOString()
      const header: Header = { cellkeep_backup: 1, version, created_at, migrations }
      const target = handle.createWriteStream({ flush: true })
      const lines = dump(client, header, count, onRows)
      await pipeline(Readable.from(lines, { objectMode: false }), createGzip(), target)
      return { ...count, bytes: target.bytesWritten }
    } catch (error) {
      await handle.close().catch(() => undefined)
      await rm(file, { force: true })
      throw error
    }
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function recordedMigrations(client: pg.Client): Promise<string[]> {
  const { rows: found } = await client.query(`select to_regclass('schema_migration') as id`)
  if (found[0].id === null)
    throw new StartError(
      'nothing_to_back_up',
      'The database has no schema yet: there is nothing to back up.',
      1,
    )
  const { rows } = await client.query<{ name: string }>('select name from schema_migration order by name')
  return rows.map(({ name }) => name)
}

async function* dump(
  client: pg.Client,
  header: Header,
  count: { tables: number; rows: number },
  onRows: OnRows,
): AsyncGenerator<string> {
  const about = await estimatedRows(client)
  const own = (line: Header | TableStart | End): string => `${marker}${JSON.stringify(line)}\n`
  yield own(header)
  for (const table of backedUpTables()) {
    const columns = await storedColumns(client, table)
    // A pending migration makes this table.
    if (columns.length === 0) continue
    yield own({ table, columns })
    count.tables += 1
    for await (const lines of rowsOf(client, table, columns)) {
      count.rows += lines.length
      onRows(count.rows, about)
      yield `${lines.join('\n')}\n`
    }
  }
  yield own({ end: true, rows: count.rows })
}

/** By the statistics of PostgreSQL, which cost nothing to read. */
async function estimatedRows(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ about: number }>(
    `select coalesce(sum(greatest(c.reltuples, 0)), 0)::float8 as about
     from unnest($1::text[]) t (name) join pg_class c on c.oid = to_regclass(t.name)`,
    [backedUpTables().map(quoted)],
  )
  return rows[0]?.about ?? 0
}

/** Roughly how much is held in memory at a time. */
const portionBytes = 1_000_000

async function* rowsOf(client: pg.Client, table: string, columns: string[]): AsyncGenerator<string[]> {
  const list = columns.map(quoted).join(', ')
  await client.query(
    `declare rows no scroll cursor for select row_to_json(t)::text as line from (select ${list} from ${quoted(table)}) t`,
  )
  for (let count = 10; ; ) {
    const { rows } = await client.query<{ line: string }>(`fetch ${count} from rows`)
    if (rows.length === 0) break
    const lines = rows.map(({ line }) => line)
    yield lines
    const mean = lines.reduce((sum, line) => sum + line.length, 0) / lines.length
    count = Math.max(1, Math.min(5000, Math.floor(portionBytes / mean)))
  }
  await client.query('close rows')
}
