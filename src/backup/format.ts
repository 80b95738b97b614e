import { createReadStream, statSync } from 'node:fs'
import { createGunzip } from 'node:zlib'
import pg from 'pg'
import { z } from 'zod'
import { expectedColumns } from '../db/migration/expected-columns.ts'
import { StartError } from '../errors.ts'

/**
 * A backup is gzipped text. A line that begins with `#` is the header, the start of a table, its end, or the end of the
 * backup. Every other line is a row of the current table, as a JSON object of its columns. Format 1 has no ends of
 * tables and no checksums.
 */
const common = {
  /** The version of Cellkeep that wrote it. */
  version: z.string().regex(/^[\w.+-]{1,100}$/),
  created_at: z.iso.datetime(),
  /** The migrations applied to the database that was backed up. */
  migrations: z.array(z.string()).min(1),
}
const header2 = z.object({
  cellkeep_backup: z.literal(2),
  ...common,
  /** The id of the database since its first migration. */
  cluster: z.uuid().nullable(),
  /** The timeline and log position of the server; null if it does not report them. */
  timeline: z.string().nullable(),
  lsn: z.string().nullable(),
  /** The highest number of an audit row. */
  audit_seq: z.int(),
})
export const header = z.discriminatedUnion('cellkeep_backup', [
  z.object({ cellkeep_backup: z.literal(1), ...common }),
  header2,
])
const sha256 = z.string().regex(/^[0-9a-f]{64}$/)
export const tableStart = z.object({ table: z.string(), columns: z.array(z.string()).min(1) })
/** The checksum covers the rows, each with its line feed. */
export const tableEnd = z.object({ table_end: z.string(), rows: z.int(), sha256 })
/** The checksum, from format 2 on, covers everything before this line. */
export const end = z.object({ end: z.literal(true), rows: z.int(), sha256: sha256.optional() })
export type Header = z.infer<typeof header>
export type NewHeader = z.infer<typeof header2>
export type TableStart = z.infer<typeof tableStart>
export type TableEnd = z.infer<typeof tableEnd>
export type End = z.infer<typeof end>

export const marker = '#'

const notKept = ['schema_migration', 'cluster', 'node', 'limiter_charge', 'audit_loss', 'sign_in_flow']

/** The service's own tables; a consumer's tables in the same database are not backed up. */
export const backedUpTables = (): string[] =>
  [...expectedColumns().keys()].filter((table) => !notKept.includes(table))

/** Those that this database has, of the version of its schema; later migrations make the others. */
export async function presentTables(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    'select name from unnest($1::text[]) with ordinality as t (name, n) where to_regclass(quote_ident(name)) is not null order by n',
    [backedUpTables()],
  )
  return rows.map(({ name }) => name)
}

/** Quotes a name for SQL text; names come from the database catalog or are checked against it. */
export const quoted = (name: string): string => pg.escapeIdentifier(name)

/** The columns to back up, in order: all but generated ones, which are computed from the others. */
export async function storedColumns(client: pg.Client, table: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select attname as name from pg_attribute
     where attrelid = to_regclass($1) and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [quoted(table)],
  )
  return rows.map(({ name }) => name)
}

/** Far above the largest row; a file of one endless line must not exhaust memory. */
const lineMaxBytes = 64 * 1024 * 1024

/** The bytes of a file read so far, and its size. */
export type OnBytes = (read: number, of: number) => void

/** The lines of a backup file. Throws a StartError if it cannot be read or unzipped. */
export async function* linesOf(file: string, onBytes: OnBytes = () => {}): AsyncGenerator<string> {
  const source = createReadStream(file)
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  const text = createGunzip()
  source.once('error', (error) => text.destroy(error)).pipe(text)
  let rest: Buffer[] = []
  let held = 0
  try {
    for await (const chunk of text as AsyncIterable<Buffer>) {
      onBytes(source.bytesRead, size)
      let from = 0
      for (let at = chunk.indexOf(0x0a); at >= 0; at = chunk.indexOf(0x0a, from)) {
        yield Buffer.concat([...rest, chunk.subarray(from, at)]).toString('utf8')
        rest = []
        held = 0
        from = at + 1
      }
      if (from < chunk.length) rest.push(chunk.subarray(from))
      held += chunk.length - from
      if (held > lineMaxBytes) throw new Error('it has a line of more than 64 MiB')
    }
  } catch (error) {
    const { message } = error as Error
    const why =
      message === 'incorrect header check'
        ? 'is not a gzip file, so it is not a backup of Cellkeep'
        : `cannot be read: ${message}`
    throw new StartError('backup_unreadable', `${file} ${why}.`, 1)
  } finally {
    source.destroy()
    text.destroy()
  }
}
