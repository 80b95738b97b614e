import type pg from 'pg'
import type { Connection } from '../db/connection.ts'
import { databaseRefusal, withoutValues } from '../db/failure.ts'
import { migrate, migrationNames } from '../db/migrate.ts'
import { StartError } from '../errors.ts'
import {
  backedUpTables,
  end,
  type Header,
  header,
  linesOf,
  marker,
  type OnBytes,
  openBackupConnection,
  quoted,
  storedColumns,
  type TableStart,
  tableStart,
} from './format.ts'

export type Restored = {
  rows: number
  /** When the backup was made. */
  created_at: string
  /** The migrations that were applied after loading because the backup is older. */
  applied: string[]
}

/**
 * Loads a backup into a database without accounts and cells: migrates to the schema of the backup, loads the
 * rows in one transaction, then applies the later migrations. Rejects with StartError.
 */
export async function restoreBackup(
  connection: Connection,
  file: string,
  onBytes?: OnBytes,
): Promise<Restored> {
  const lines = linesOf(file, onBytes)
  try {
    const { migrations, created_at } = headerOf((await lines.next()).value, file)
    await migrate(connection, { upTo: migrations.at(-1) as string }).catch((error) => {
      throw error instanceof StartError && error.reason === 'binary_older_than_db' ? newerThan(file) : error
    })
    const rows = await inTransaction(connection, (client) => load(client, lines, file))
    const { applied } = await migrate(connection)
    return { rows, created_at, applied }
  } finally {
    await lines.return(undefined)
  }
}

function headerOf(line: string | undefined, file: string): Header {
  const found = header.safeParse(ownLine(line ?? '')).data
  if (!found) throw refuse('backup_unreadable', `${file} is not a backup of Cellkeep.`)
  const known = migrationNames()
  if (found.migrations.some((name, index) => name !== known[index]))
    throw refuse(
      'backup_of_newer_version',
      `${file} was made by version ${found.version}, whose schema this version does not know: install that version or a later one.`,
    )
  return found
}

const newerThan = (file: string): StartError =>
  refuse(
    'database_newer_than_backup',
    `The schema of the database is newer than that of ${file}: restore into an empty database (move the directory \`db\` of the data dir away, or create another one).`,
  )

async function inTransaction<T>(connection: Connection, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await openBackupConnection(connection)
  try {
    await client.query('begin')
    const result = await work(client)
    await client.query('commit')
    await client.query('analyze').catch(() => undefined)
    return result
  } finally {
    // Also rolls back a transaction that a failure left open.
    await client.end().catch(() => undefined)
  }
}

async function load(client: pg.Client, lines: AsyncGenerator<string>, file: string): Promise<number> {
  const tables = await presentTables(client)
  const all = tables.map(quoted)
  await requireEmpty(client, all)
  // Two tables reference each other, so no order of loading works; the references are checked at the end.
  const references = await dropReferences(client, tables)
  for (const table of all) await client.query(`delete from ${table}`)
  const rows = await insertAll(client, lines, tables, file)
  await endLinks(client, tables)
  try {
    for (const { table, name, definition } of references)
      await client.query(`alter table ${table} add constraint ${name} ${definition}`)
    await restartIdentities(client, tables)
  } catch (error) {
    throw damaged(file, 'between its rows', error)
  }
  return rows
}

/** The tables that exist in the schema of the backup; later migrations make the others. */
async function presentTables(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    'select name from unnest($1::text[]) with ordinality as t (name, n) where to_regclass(quote_ident(name)) is not null order by n',
    [backedUpTables()],
  )
  return rows.map(({ name }) => name)
}

async function requireEmpty(client: pg.Client, tables: readonly string[]): Promise<void> {
  await client.query(`lock table ${tables.join(', ')} in access exclusive mode`)
  const { rows } = await client.query(
    'select exists (select from account) as accounts, exists (select from cell) as cells',
  )
  if (rows[0].accounts || rows[0].cells)
    throw refuse(
      'database_not_empty',
      'The database already holds accounts or cells, and a restore never merges: use an empty database.',
    )
}

/** Nothing is sent from a backup, and no link of it works: they may have been used since. */
async function endLinks(client: pg.Client, tables: readonly string[]): Promise<void> {
  if (tables.includes('account_ticket'))
    await client.query(
      'update account_ticket set voided_at = now() where used_at is null and voided_at is null',
    )
  if (tables.includes('message_outbox'))
    await client.query(
      `update message_outbox set state = 'failed', error = 'expired', finished_at = now(), next_attempt_at = null,
       leased_until = null, to_address = null, link_sealed = null where state = 'queued'`,
    )
}

type Reference = { table: string; name: string; definition: string }

async function dropReferences(client: pg.Client, tables: readonly string[]): Promise<Reference[]> {
  const { rows } = await client.query<Reference>(
    `select conrelid::regclass::text as table, quote_ident(conname) as name, pg_get_constraintdef(oid) as definition
     from pg_constraint where contype = 'f' and conrelid = any($1::regclass[]) order by 1, 2`,
    [tables.map(quoted)],
  )
  for (const { table, name } of rows) await client.query(`alter table ${table} drop constraint ${name}`)
  return rows
}

const portionBytes = 1_000_000

/** Resolves to the number of rows, which must match that of the last line. */
async function insertAll(
  client: pg.Client,
  lines: AsyncGenerator<string>,
  tables: readonly string[],
  file: string,
): Promise<number> {
  const begun = new Set<string>()
  let insert: string | undefined
  // Line 1 is the header.
  let at = 1
  let total = 0
  let portion: string[] = []
  let bytes = 0
  const flush = async (): Promise<void> => {
    if (portion.length > 0)
      await client.query(insert as string, [`[${portion.join(',')}]`]).catch((error) => {
        throw damaged(file, `in the ${portion.length} rows before line ${at}`, error)
      })
    portion = []
    bytes = 0
  }
  for await (const line of lines) {
    at += 1
    if (!line.startsWith(marker)) {
      if (insert === undefined) throw damaged(file, `at line ${at}`, 'a row before any table')
      portion.push(line)
      bytes += line.length
      total += 1
      if (bytes > portionBytes) await flush()
      continue
    }
    await flush()
    const own = ownLine(line)
    const last = end.safeParse(own).data
    if (last?.rows === total) return total
    if (last) throw damaged(file, `at line ${at}`, `${total} of ${last.rows} rows found`)
    const next = tableStart.safeParse(own).data
    if (!next || !tables.includes(next.table) || begun.has(next.table))
      throw damaged(file, `at line ${at}`, 'neither the start of another table nor the end')
    begun.add(next.table)
    insert = await insertInto(client, next).catch((error) => {
      throw damaged(file, `at line ${at}`, error)
    })
  }
  throw damaged(file, `at line ${at}`, 'the end is missing')
}

async function insertInto(client: pg.Client, { table: name, columns }: TableStart): Promise<string> {
  const stored = await storedColumns(client, name)
  const isKnown = columns.every((column) => stored.includes(column))
  if (!isKnown || new Set(columns).size < columns.length)
    throw new Error(`the columns do not match those of ${name}`)
  const list = columns.map(quoted).join(', ')
  const table = quoted(name)
  return `insert into ${table} (${list}) overriding system value
    select ${list} from json_populate_recordset(null::${table}, $1::json)`
}

/** Continues identity columns above the loaded values. */
async function restartIdentities(client: pg.Client, tables: readonly string[]): Promise<void> {
  const { rows } = await client.query<{ table: string; column: string }>(
    `select attrelid::regclass::text as table, quote_ident(attname) as column from pg_attribute
     where attidentity <> '' and attrelid = any($1::regclass[])`,
    [tables.map(quoted)],
  )
  for (const { table, column } of rows)
    await client.query(
      `select setval(pg_get_serial_sequence($1, $2), (select coalesce(max(${column}), 0) + 1 from ${table}), false)`,
      [table, column.replaceAll('"', '')],
    )
}

function ownLine(line: string): unknown {
  if (!line.startsWith(marker)) return undefined
  try {
    return JSON.parse(line.slice(marker.length))
  } catch {
    return undefined
  }
}

const refuse = (reason: string, message: string): StartError => new StartError(reason, message, 1)

/** The error for a bad file, without values of rows, which may be secret. A lost database gets its own error. */
function damaged(file: string, where: string, why: unknown): unknown {
  if (databaseRefusal(why))
    return new StartError('db_unreachable', `The database was lost: ${(why as Error).message}.`, 3, {
      cause: why,
    })
  const what = why instanceof Error ? (withoutValues(why) as Error).message : why
  return refuse('backup_damaged', `${file} is damaged ${where}: ${what}. Nothing was restored.`)
}
