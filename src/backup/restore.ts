import { stat } from 'node:fs/promises'
import type pg from 'pg'
import { aliveNodes } from '../db/migration/alive-nodes.ts'
import { connect, migrate } from '../db/migration/migrate.ts'
import { readRecords } from '../db/migration/records.ts'
import type { Connection } from '../db/servers/connection.ts'
import { StartError } from '../errors.ts'
import { addAgain, type Dropped, dropEveryRule, dropReferences } from './constraints.ts'
import { linesOf, type OnBytes, presentTables, quoted, storedColumns, type TableStart } from './format.ts'
import { damaged, headerOf, type Portion, portionsOf, refuse } from './read.ts'

export type Restored = {
  rows: number
  /** When the backup was made. */
  created_at: string
  /** The migrations that were applied after loading because the backup is older. */
  applied: string[]
}

type RestoreOptions = {
  onBytes?: OnBytes | undefined
  /** Also loads rows that violate the schema, and reports what they violate. Otherwise such a file is refused. */
  breaking?: (rule: Dropped) => void
}

/**
 * Loads a backup into a database without accounts and cells: migrates to the schema of the backup, loads the
 * rows in one transaction, then applies the later migrations. Rejects with StartError.
 */
export async function restoreBackup(
  connection: Connection,
  file: string,
  { onBytes, breaking }: RestoreOptions = {},
): Promise<Restored> {
  const lines = linesOf(file, onBytes)
  try {
    const first: string = (await lines.next()).value ?? ''
    const { migrations, created_at, cellkeep_backup } = headerOf(first, file)
    await migrate(connection, { mode: 'run', only: migrations }).catch((error) => {
      throw error instanceof StartError && error.reason === 'binary_older_than_db' ? newerThan(file) : error
    })
    const source = { lines, first, file, isSummed: cellkeep_backup > 1 }
    const rows = await inTransaction(connection, async (client) => {
      if ((await readRecords(client)).some(({ name }) => !migrations.includes(name))) throw newerThan(file)
      return await load(client, source, breaking)
    })
    const { applied } = await migrate(connection, { mode: 'run' })
    return { rows, created_at, applied }
  } finally {
    await lines.return(undefined)
  }
}

/** Refuses a file that is no backup, before a database is made for it. A pipe can be read only once, so it passes. */
export async function requireBackup(file: string): Promise<void> {
  if ((await stat(file)).isFIFO()) return
  const lines = linesOf(file)
  try {
    headerOf((await lines.next()).value, file)
  } finally {
    await lines.return(undefined)
  }
}

const newerThan = (file: string): StartError =>
  refuse(
    'database_newer_than_backup',
    `The schema of the database is newer than that of ${file}. Restore into an empty database: move the directory \`db\` of the data dir away, or create another database.`,
  )

async function inTransaction<T>(connection: Connection, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connect(connection, 'cellkeep backup')
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

type Source = { lines: AsyncIterable<string>; first: string; file: string; isSummed: boolean }

async function load(
  client: pg.Client,
  { lines, first, file, isSummed }: Source,
  breaking: RestoreOptions['breaking'],
): Promise<number> {
  const tables = await presentTables(client)
  const all = tables.map(quoted)
  await requireEmpty(client, all)
  await requireNoNodes(client)
  const dropped = breaking ? await dropEveryRule(client) : await dropReferences(client, tables)
  for (const table of all) await client.query(`delete from ${table}`)
  const portions = portionsOf(lines, first, { file, isSummed, tables })
  const rows = await insertAll(client, portions, file, isSummed)
  await endLinks(client, tables)
  try {
    if (breaking) for (const rule of await addAgain(client, dropped)) breaking(rule)
    else for (const { add } of dropped) await client.query(add)
    await restartIdentities(client, tables)
  } catch (error) {
    throw damaged(file, 'between its rows', error)
  }
  return rows
}

async function requireEmpty(client: pg.Client, tables: readonly string[]): Promise<void> {
  await client.query(`lock table ${tables.join(', ')} in access exclusive mode`)
  const { rows } = await client.query(
    'select exists (select from account) as accounts, exists (select from cell) as cells',
  )
  if (rows[0].accounts || rows[0].cells)
    throw refuse(
      'database_not_empty',
      'The database already holds accounts or cells, and a restore does not merge. Use an empty database.',
    )
}

/** A node would at once accept the credentials that are valid again, before an operator can end them. */
async function requireNoNodes(client: pg.Client): Promise<void> {
  const nodes = await aliveNodes(client)
  if (nodes.length === 0) return
  throw refuse(
    'database_in_use',
    `The database is served by ${nodes.map(({ name }) => name).join(', ')}. Stop every node, and run \`cellkeep restore\` again; one that was killed counts for 15 s.`,
  )
}

/** Cancels queued messages and one-time links: they may have been sent or used since the backup. */
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

async function insertAll(
  client: pg.Client,
  portions: AsyncIterable<Portion>,
  file: string,
  isWhole: boolean,
): Promise<number> {
  let table: TableStart | undefined
  let insert = ''
  let isDivided = false
  let total = 0
  for await (const portion of portions) {
    const { rows, at } = portion
    if (portion.table !== table) {
      table = portion.table
      insert = await insertInto(client, table, isWhole).catch((error) => {
        throw damaged(file, `at line ${at}`, error)
      })
      isDivided = await hasPartitions(client, table.table)
    }
    if (rows.length === 0) continue
    const json = `[${rows.join(',')}]`
    try {
      if (isDivided) await client.query(makePartitions, [json])
      await client.query(insert, [json])
    } catch (error) {
      throw damaged(file, `in the ${rows.length} rows before line ${at}`, error)
    }
    total += rows.length
  }
  return total
}

async function insertInto(
  client: pg.Client,
  { table: name, columns }: TableStart,
  isWhole: boolean,
): Promise<string> {
  const stored = await storedColumns(client, name)
  const isKnown = columns.every((column) => stored.includes(column))
  const isShort = isWhole && columns.length < stored.length
  if (!isKnown || isShort || new Set(columns).size < columns.length)
    throw new Error(`the columns do not match those of ${name}`)
  const list = columns.map(quoted).join(', ')
  const table = quoted(name)
  return `insert into ${table} (${list}) overriding system value
    select ${list} from json_populate_recordset(null::${table}, $1::json)`
}

async function hasPartitions(client: pg.Client, table: string): Promise<boolean> {
  const { rows } = await client.query('select from pg_partitioned_table where partrelid = $1::regclass', [
    quoted(table),
  ])
  return rows.length > 0
}

/** Makes the partitions for the numbers of these rows. No partition is smaller than a million. */
const makePartitions = `
  select audit_partition(min(seq)) from json_to_recordset($1::json) as t (seq bigint) group by seq / 1000000`

/** Continues identity columns above the loaded values. */
async function restartIdentities(client: pg.Client, tables: readonly string[]): Promise<void> {
  const { rows } = await client.query<{ table: string; column: string }>(
    `select attrelid::regclass::text as table, quote_ident(attname) as column from pg_attribute
     where attidentity <> '' and attrelid = any($1::regclass[])`,
    [tables.map(quoted)],
  )
  for (const { table, column } of rows)
    await client.query(
      // Rows move from the inbox to the log, so those of both count.
      `select setval(pg_get_serial_sequence($1, $2),
         (select coalesce(max(${column}), 0) + 1 from ${table === 'audit_inbox' ? 'audit_entries()' : table}), false)`,
      [table, column.replaceAll('"', '')],
    )
}
