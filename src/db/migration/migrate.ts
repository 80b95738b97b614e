import pg from 'pg'
import { StartError } from '../../errors.ts'
import type { Log } from '../../log/log.ts'
import { version as ownVersion } from '../../wire/version.ts'
import { takesWrites } from '../servers/admission.ts'
import { type Connection, clientConfig, directOf } from '../servers/connection.ts'
import { dial } from '../servers/dial.ts'
import { databaseRefusal, takesNoWrites } from '../servers/failure.ts'
import { textOf, unreachable } from '../servers/unreachable.ts'
import { longLock, runnerLock, underLock } from './lock.ts'
import { defaultPatience } from './patience.ts'
import { type Comparison, compare, readRecords } from './records.ts'
import { runFresh, runStep } from './run.ts'
import type { Around, Patience, Runner } from './runner.ts'
import { migrationsDirectory, namesOf, readSteps, refuse, type Step } from './steps.ts'

export type MigrateOptions = {
  /**
   * `auto` applies what a start needs, the pending steps of kind `expand`; `check` refuses if there are any. `run`
   * applies all, `background` those that build indexes and fill columns, unless another process runs them.
   */
  mode?: 'auto' | 'check' | 'run' | 'background'
  directory?: string
  /** Only these steps run. */
  only?: readonly string[] | undefined
  version?: string
  log?: Pick<Log, 'info' | 'warn'>
  around?: Around
  patience?: Partial<Patience>
  /** Ends the connection, and with it what is running. */
  signal?: AbortSignal
}

/** The steps that this call applied, those that are left, and those of newer versions that the database has. */
export type Migrated = { applied: string[]; pending: Step[]; newer: string[] }

/**
 * Migrates the database to this version, within the schema of the connection, which it creates. An empty database gets
 * all steps in one transaction; otherwise each step is its own transaction, or continues where it was interrupted. A
 * lock lets one process per database change the schema. Rejects with a StartError: `db_unreachable`, `db_read_only`,
 * `db_unsuitable`, `migration_pending`, `migration_failed`, `migration_lock_timeout`, `migration_name_divergence`,
 * `contract_blocked`, `binary_older_than_db`, `foreign_tables`, `migrations_missing`, `descriptors_out`.
 */
export async function migrate(connection: Connection, options: MigrateOptions = {}): Promise<Migrated> {
  return await migrateOn(await connect(connection), connection, options)
}

/** The same on a client from `connect`, which it closes. */
export async function migrateOn(
  client: pg.Client,
  connection: Connection,
  options: MigrateOptions = {},
): Promise<Migrated> {
  const { mode = 'auto', directory = migrationsDirectory, version = ownVersion, only, log, signal } = options
  const cut = (): void => void client.end().catch(() => undefined)
  signal?.addEventListener('abort', cut)
  // Between two statements the server says only here why it ends the connection.
  let lastWords: Error | undefined
  client.once('error', (error) => {
    lastWords = error
  })
  const runner: Runner = {
    client,
    connect: () => connect(connection),
    schema: connection.schema,
    around: options.around ?? ((_step, work) => work()),
    patience: { ...defaultPatience, ...options.patience },
    signal,
    at: 'reading the recorded migrations',
  }
  let steps: Step[] = []
  const look = async (): Promise<Look> => {
    const records = await readRecords(client)
    const { pending, newer } = compare(steps, records, version)
    const chosen = only ? pending.filter(({ name }) => only.includes(name)) : pending
    return { isFresh: records.length === 0, pending: chosen, newer }
  }
  try {
    signal?.throwIfAborted()
    steps = readSteps(directory)
    await requireSuitable(client)
    const first = await look()
    if (first.newer.length > 0)
      log?.warn({ event: 'schema_newer', steps: first.newer }, 'a newer version has migrated the database')
    if (mode === 'check') requireExpanded(first.pending)
    const applied = mode === 'check' ? [] : await apply(runner, mode, first, look, log)
    const pending = first.pending.filter(({ name }) => !applied.includes(name))
    return { applied, pending, newer: first.newer }
  } catch (error) {
    const isTold = error instanceof StartError || error instanceof pg.DatabaseError
    throw explained(isTold ? error : (lastWords ?? error), runner.at)
  } finally {
    signal?.removeEventListener('abort', cut)
    // Also rolls back a transaction that a failure left open.
    await client.end().catch(() => undefined)
  }
}

type Look = Comparison & { isFresh: boolean }

/** The steps that a start needs come first, whatever is pending before them: they never rely on the others. */
async function apply(
  runner: Runner,
  mode: 'auto' | 'run' | 'background',
  { isFresh, pending }: Look,
  look: () => Promise<Look>,
  log: MigrateOptions['log'],
): Promise<string[]> {
  const applied: string[] = []
  const isNext = ({ kind }: Step): boolean => kind === 'expand'
  const done = (step: Step): void => {
    applied.push(step.name)
    log?.info({ migration: step.name, kind: step.kind }, 'migration applied')
  }
  const onWait = (): void =>
    log?.warn({ event: 'migration_waits' }, 'waiting for another process that is migrating the database')
  const locked = (name: string, work: () => Promise<void>): Promise<boolean> => {
    runner.at = 'waiting for the migration lock'
    const { client, signal } = runner
    return underLock(client, name, work, { signal, onWait: mode === 'background' ? undefined : onWait })
  }
  if (mode !== 'background' && (isFresh ? pending.length > 0 : pending.some(isNext)))
    await locked(runnerLock, async () => {
      // Another process may have applied them meanwhile.
      const now = await look()
      if (now.isFresh) {
        await runFresh(runner, now.pending)
        for (const step of now.pending) done(step)
      } else
        for (const step of now.pending.filter(isNext)) {
          await runStep(runner, step)
          done(step)
        }
    })
  if (mode === 'auto') return applied
  for (const step of (await look()).pending) {
    const isLong = step.kind !== 'contract'
    if (mode === 'background' && !isLong) continue
    const isFree = await locked(isLong ? longLock : runnerLock, async () => {
      if (!(await look()).pending.some(({ name }) => name === step.name)) return
      await runStep(runner, step)
      done(step)
    })
    if (!isFree) break
  }
  return applied
}

function requireExpanded(pending: readonly Step[]): void {
  const names = namesOf(pending.filter(({ kind }) => kind === 'expand'))
  if (names.length === 0) return
  throw refuse(
    'migration_pending',
    `The database lacks ${names.join(', ')}. Run \`cellkeep migrate\`, or start with CELLKEEP_MIGRATE=auto.`,
  )
}

function explained(error: unknown, at: string): StartError {
  if (error instanceof StartError) return error
  const text = `Migration failed (${at}): ${textOf(error)}.`
  if (takesNoWrites(error))
    return refuse('db_read_only', `${text} The URL leads to a standby. Set it to the primary.`, error)
  const lost = databaseRefusal(error)?.data.reason === 'service_unavailable'
  const next =
    'What was not finished was undone, or the next run continues it. Fix the cause and start again.'
  return refuse(lost ? 'db_unreachable' : 'migration_failed', `${text} ${next}`, error)
}

/** Runs `work` on a connection of its own. */
export async function withClient<T>(
  connection: Connection,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = await connect(connection)
  return await work(client).finally(() => client.end().catch(() => undefined))
}

/** A connection without time limits, which sees the schema of the service alone. Rejects with a StartError. */
export async function connect(
  connection: Connection,
  application_name = 'cellkeep migrate',
): Promise<pg.Client> {
  const { schema } = connection
  try {
    const client = await dial({
      connection: directOf(connection),
      config: (one) => ({
        application_name,
        ...clientConfig({ ...one, schema: undefined }, '-c statement_timeout=0'),
      }),
      judge: takesWrites,
    })
    await withoutLimits(client, schema)
    // Otherwise PostgreSQL would go on building an index after this process has gone. Some platforms do not support the
    // check.
    await client.query('set client_connection_check_interval = 1000').catch(() => undefined)
    return client
  } catch (error) {
    throw unreachable(error)
  }
}

/** Limits set for the role or the database are meant for requests, not for work on a large table. */
export const withoutLimits = (client: pg.Client, schema: string | undefined): Promise<unknown> =>
  client.query(
    // Not from pg_settings, which shows every setting and takes twenty times as long. PostgreSQL 15 lacks one of these.
    `select set_config(name, '0', false)
       from unnest('{statement,lock,transaction,idle_session,idle_in_transaction_session}'::text[]) as kind,
         concat(kind, '_timeout') as name
       where current_setting(name, true) is not null;
     set timezone = 'UTC'${schema ? `; set search_path = ${pg.escapeIdentifier(schema)}` : ''}`,
  )

async function requireSuitable(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: number; name: string; encoding: string }>(
    `select current_setting('server_version_num')::int as version, current_setting('server_version') as name,
            current_setting('server_encoding') as encoding`,
  )
  const server = rows[0]
  if (server === undefined || server.version < 150_000)
    throw refuse('db_unsuitable', `PostgreSQL ${server?.name} is too old. Use version 15 to 18.`)
  if (server.encoding !== 'UTF8')
    throw refuse(
      'db_unsuitable',
      `The encoding of the database is ${server.encoding}. Create a database with UTF8.`,
    )
}
