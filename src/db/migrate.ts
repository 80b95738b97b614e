import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { StartError } from '../errors.ts'
import { type Connection, clientConfig, searchPath } from './connection.ts'
import { databaseRefusal } from './failure.ts'

/** The package's migrations: two levels up from `src/db` and from `dist/db` alike. */
export const migrationsDirectory = fileURLToPath(new URL('../../migrations/', import.meta.url))

/** Exit code if the database is unreachable or its schema is not the one this version needs. */
const databaseExit = 3
const connectWaitMs = 5_000

export type MigrateOptions = {
  /** `auto` applies pending migrations; `check` refuses to start if there are any. */
  mode?: 'auto' | 'check'
  directory?: string
  /** The last migration to consider; later ones are ignored. */
  upTo?: string
  log?: { info(fields: object, text: string): void }
  /** Called with the name of each migration before it runs. */
  observe?: (name: string) => void
}

/**
 * Brings the database to the schema of this version, within the schema of the connection, which it makes. All
 * pending migrations and their records are one transaction; a lock lets one process per database migrate at a time.
 * Resolves to the migrations that this call applied. Rejects with a StartError: `db_unreachable`, `db_unsuitable`,
 * `migration_pending`, `migration_failed`, `migration_name_divergence`, `binary_older_than_db`, `foreign_tables`,
 * `migrations_missing`.
 */
export async function migrate(
  connection: Connection,
  options: MigrateOptions = {},
): Promise<{ applied: string[] }> {
  const { mode = 'auto', directory = migrationsDirectory, upTo, log, observe } = options
  const all = migrationNames(directory)
  const names = upTo === undefined ? all : all.slice(0, all.indexOf(upTo) + 1)
  const { schema } = connection
  const client = await connect(connection)
  const run: Run = { client, schema, names, directory, observe, at: 'reading the recorded migrations' }
  try {
    await requireSuitable(client, schema)
    const pending = pendingSteps(names, await recordedNames(client))
    if (pending.length === 0) return { applied: [] }
    if (mode === 'check') throw refuse('migration_pending', pendingText(pending))
    const applied = await applyPending(run)
    for (const migration of applied) log?.info({ migration }, 'migration applied')
    return { applied }
  } catch (error) {
    if (error instanceof StartError) throw error
    const lost = databaseRefusal(error)?.data.reason === 'service_unavailable'
    const text = `Migration failed (${run.at}): ${textOf(error)}. Either all pending migrations are applied or none; `
    throw refuse(lost ? 'db_unreachable' : 'migration_failed', `${text}fix the cause and start again.`, error)
  } finally {
    // Also rolls back a transaction that a failure left open.
    await client.end().catch(() => undefined)
  }
}

type Run = {
  client: pg.Client
  schema: string | undefined
  names: string[]
  directory: string
  observe: MigrateOptions['observe']
  /** The current step, for the error message. */
  at: string
}

/** The migrations of a directory in order; a name is the file name without `.sql`. */
export function migrationNames(directory: string = migrationsDirectory): string[] {
  let files: string[]
  try {
    files = readdirSync(directory).filter((file) => file.endsWith('.sql') && file !== 'schema.sql')
  } catch (error) {
    throw refuse('migrations_missing', `Cannot read ${directory}; install the package again.`, error)
  }
  const wrong = files.find((file) => !/^[0-9]{4}_[a-z0-9_]+\.sql$/.test(file))
  if (wrong !== undefined)
    throw refuse(
      'migrations_missing',
      `${join(directory, wrong)} is not named like 0001_name.sql; rename it.`,
    )
  if (files.length === 0)
    throw refuse('migrations_missing', `${directory} holds no migrations; install the package again.`)
  return files.map((file) => file.slice(0, -'.sql'.length)).sort()
}

/** A connection without time limits, which sees the schema of the service alone. Rejects with `db_unreachable`. */
export async function connect(connection: Connection): Promise<pg.Client> {
  const client = new pg.Client({
    application_name: 'cellkeep migrate',
    connectionTimeoutMillis: connectWaitMs,
    ...clientConfig(connection, '', { isAlone: true }),
  })
  // Without an 'error' listener Node exits when the connection is lost; the running statement reports it.
  client.on('error', () => undefined)
  try {
    await client.connect()
    // Limits set for the role or the database are meant for requests, not for a migration of a large table.
    await client.query(
      'set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = 0',
    )
    return client
  } catch (error) {
    await client.end().catch(() => undefined)
    const text = textOf(error)
    const isPooler = /startup parameter/i.test(text)
    throw refuse(
      isPooler ? 'db_unsuitable' : 'db_unreachable',
      `The database cannot be reached: ${text}. ${isPooler ? poolerText : 'Check that it runs.'}`,
      error,
    )
  }
}

const poolerText =
  'A connection pooler must pass the start-up parameter `options` on; connect to PostgreSQL itself otherwise.'

async function requireSuitable(client: pg.Client, schema: string | undefined): Promise<void> {
  const { rows } = await client.query<{ version: number; name: string; encoding: string; path: string }>(
    `select current_setting('server_version_num')::int as version, current_setting('server_version') as name,
            current_setting('server_encoding') as encoding, current_setting('search_path') as path`,
  )
  const server = rows[0]
  if (server === undefined || server.version < 150_000)
    throw refuse('db_unsuitable', `PostgreSQL ${server?.name} is too old; use version 15 to 18.`)
  if (server.encoding !== 'UTF8')
    throw refuse('db_unsuitable', `The database is encoded in ${server.encoding}; create one with UTF8.`)
  if (schema !== undefined && server.path.split(',')[0]?.replaceAll('"', '') !== schema)
    throw refuse(
      'db_unsuitable',
      `The search path is ${server.path} where ${searchPath(schema)} was asked for. ${poolerText}`,
    )
}

async function recordedNames(client: pg.Client): Promise<string[]> {
  const found = await client.query<{ found: boolean }>(
    `select to_regclass('schema_migration') is not null as found`,
  )
  if (!found.rows[0]?.found) return []
  const { rows } = await client.query<{ name: string }>('select name from schema_migration order by name')
  return rows.map((row) => row.name)
}

/** The migrations yet to run. Throws if the recorded names don't match those of this version. */
function pendingSteps(names: string[], recorded: string[]): string[] {
  const unknown = recorded.filter((name) => !names.includes(name))
  if (unknown.length > 0 && names.every((name) => recorded.includes(name)))
    throw refuse(
      'binary_older_than_db',
      `This database was migrated by a newer version (${unknown.join(', ')}). Install that version or a later one.`,
    )
  const at = recorded.findIndex((name, index) => name !== names[index])
  if (at >= 0)
    throw refuse(
      'migration_name_divergence',
      `The database records ${recorded[at]} where this version has ${names[at] ?? 'no migration'}. ` +
        'It belongs to another program or branch: use its own version, or another database.',
    )
  return names.slice(recorded.length)
}

async function applyPending(run: Run): Promise<string[]> {
  const { client, schema } = run
  run.at = 'waiting for the migration lock'
  await client.query('begin isolation level read committed')
  // Held until the transaction ends: a process that waited here then finds the migrations recorded.
  await client.query(`select pg_advisory_xact_lock(hashtextextended('cellkeep migrate', 0))`)
  if (schema !== undefined) await makeSchema(client, schema)
  await client.query(
    `create table if not exists schema_migration (
       name text collate "C" primary key, applied_at timestamptz(3) not null default now())`,
  )
  const pending = pendingSteps(run.names, await recordedNames(client))
  const steps = pending.map((name) => ({
    name,
    text: readFileSync(join(run.directory, `${name}.sql`), 'utf8'),
  }))
  await requireRoom(
    client,
    steps.map(({ text }) => text),
  )
  for (const { name, text } of steps) {
    run.at = name
    run.observe?.(name)
    await client.query(text)
    await client.query('insert into schema_migration (name) values ($1)', [name])
  }
  run.at = 'commit'
  await client.query('commit')
  return pending
}

async function makeSchema(client: pg.Client, schema: string): Promise<void> {
  const { rows } = await client.query('select to_regnamespace($1) is not null as found', [schema])
  if (rows[0].found) return
  await client.query(`create schema ${pg.escapeIdentifier(schema)}`).catch((error: pg.DatabaseError) => {
    if (error.code !== '42501') throw error
    throw refuse(
      'migration_failed',
      `The database user may not create the schema ${schema}. Let an owner of the database run ` +
        `\`create schema ${schema} authorization USER\`, or set CELLKEEP_DATABASE_SCHEMA to a schema of that user.`,
      error,
    )
  })
}

/** Refuses if something else has the name of a table that the steps make, as they would take it for their own. */
async function requireRoom(client: pg.Client, steps: readonly string[]): Promise<void> {
  const made = steps.flatMap((text) =>
    [...text.matchAll(/^create (?:unlogged )?table if not exists (\w+)/gm)].map(([, table]) => table),
  )
  const { rows } = await client.query<{ schema: string; tables: string }>(
    `select current_schema() as schema, string_agg(relname, ', ' order by relname) as tables
     from pg_class where relnamespace = current_schema()::regnamespace and relname = any($1) having count(*) > 0`,
    [made],
  )
  const [found] = rows
  if (found)
    throw refuse(
      'foreign_tables',
      `The schema ${found.schema} holds ${found.tables}, which another program made. Nothing was changed: set ` +
        'CELLKEEP_DATABASE_SCHEMA (`database_schema`) to a schema without them, such as cellkeep.',
    )
}

const pendingText = (pending: string[]): string =>
  `The database lacks ${pending.join(', ')}. Run \`cellkeep migrate\`, or start with CELLKEEP_MIGRATE=auto.`

const refuse = (reason: string, message: string, cause?: unknown): StartError =>
  new StartError(reason, message, databaseExit, { cause })

const textOf = (error: unknown): string => {
  const { message, code } = error as { message?: string; code?: string }
  // A refused connection to several addresses is an AggregateError without a message.
  return message || code || String(error)
}
