import { createReadStream } from 'node:fs'
import { createGunzip } from 'node:zlib'
import pg from 'pg'
import { expectedColumns } from '../db/expected-columns.ts'
import { StartError } from '../errors.ts'

/**
 * A backup is gzipped text. A line that begins with `#` is one of ours: the header, the begin of a table, the
 * end; every other line is a row of the table begun last, as a JSON object of its columns.
 */
export type Header = {
  cellkeep_backup: 1
  /** Of the program that wrote it. */
  version: string
  created_at: string
  /** The migrations that made the schema of the rows. */
  migrations: string[]
}
export type TableStart = { table: string; columns: string[] }
export type End = { end: true; rows: number }

export const marker = '#'

/** The steps are those of the restoring program; charges and what was lost of late belong to the moment. */
const notKept = ['schema_migration', 'limiter_charge', 'audit_loss']

/** The tables of the service that hold what is its own; a consumer's tables beside them are not in a backup. */
export const backedUpTables = (): string[] =>
  [...expectedColumns().keys()].filter((table) => !notKept.includes(table))

/** Quoted for SQL text; names come from the catalogue of the database or are checked against it. */
export const quoted = (name: string): string => pg.escapeIdentifier(name)

/** A connection without the limits that are meant for requests. */
export async function openBackupConnection(connection: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client({
    application_name: 'cellkeep backup',
    connectionTimeoutMillis: 5000,
    ...connection,
  })
  // Without a listener a lost connection ends the process; the statement under way reports it.
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query(
      `set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = 0; set timezone = 'UTC'`,
    )
    return client
  } catch (error) {
    await client.end().catch(() => undefined)
    throw new StartError('db_unreachable', `The database cannot be reached: ${(error as Error).message}`, 3)
  }
}

/** The columns that have values of their own, in order; generated ones follow from them. */
export async function storedColumns(client: pg.Client, table: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select attname as name from pg_attribute
     where attrelid = to_regclass($1) and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [quoted(table)],
  )
  return rows.map(({ name }) => name)
}

/** The lines of a backup file. Rejects with a StartError where it cannot be read or is damaged. */
export async function* linesOf(file: string): AsyncGenerator<string> {
  const source = createReadStream(file)
  const text = createGunzip()
  source.once('error', (error) => text.destroy(error)).pipe(text)
  let rest: Buffer[] = []
  try {
    for await (const chunk of text as AsyncIterable<Buffer>) {
      let from = 0
      for (let at = chunk.indexOf(0x0a); at >= 0; at = chunk.indexOf(0x0a, from)) {
        yield Buffer.concat([...rest, chunk.subarray(from, at)]).toString('utf8')
        rest = []
        from = at + 1
      }
      if (from < chunk.length) rest.push(chunk.subarray(from))
    }
  } catch (error) {
    throw new StartError('backup_unreadable', `${file} cannot be read: ${(error as Error).message}`, 1)
  } finally {
    source.destroy()
    text.destroy()
  }
}
