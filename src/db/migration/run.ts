import pg from 'pg'
import { aliveNodes } from './alive-nodes.ts'
import { rowsMax, runBackfill, runBatch } from './backfill.ts'
import { runIndex } from './indexes.ts'
import { patiently } from './patience.ts'
import { makeRecords, recordBegun, recordDone } from './records.ts'
import type { Runner } from './runner.ts'
import { isOlder, refuse, type Step } from './steps.ts'

/** All steps and their records in one transaction, on a database without any. */
export async function runFresh(runner: Runner, steps: readonly Step[]): Promise<void> {
  const { client, schema } = runner
  await client.query('begin isolation level read committed')
  if (schema !== undefined) await makeSchema(client, schema)
  await requireRoom(client, steps)
  await makeRecords(client)
  for (const step of steps) {
    runner.at = step.name
    await runner.around(step, () => runAlone(client, step))
  }
  runner.at = 'commit'
  await client.query('commit')
}

async function runAlone(client: pg.Client, step: Step): Promise<void> {
  if (step.kind === 'backfill') {
    await recordBegun(client, step)
    while (!(await runBatch(client, step, rowsMax)).isOver);
    return
  }
  // A transaction cannot build an index concurrently, and an empty database has no other users.
  await client.query(step.kind === 'index' ? step.text.replace(/\bconcurrently\b/gi, '') : step.text)
  await recordDone(client, step)
}

/** One step, on a database that may be in use. */
export async function runStep(runner: Runner, step: Step): Promise<void> {
  runner.at = step.name
  await runner.around(step, async (onProgress) => {
    if (step.kind === 'index') return await runIndex(runner, step, onProgress)
    if (step.kind === 'backfill') return await runBackfill(runner, step, onProgress)
    await patiently(runner, async (client) => {
      if (step.kind === 'contract') await requireNodes(client, step)
      await requireRoom(client, [step])
      await makeRecords(client)
      await client.query(step.text)
      await recordDone(client, step)
    })
  })
}

/** The recently seen nodes that do not work on a database with this step. */
export const nodesBelow = async (client: pg.Client, needs: string): Promise<string[]> =>
  (await aliveNodes(client))
    .filter(({ version }) => isOlder(version, needs))
    .map(({ name, version }) => `${name} (${version})`)

async function requireNodes(client: pg.Client, { name, needs }: Step): Promise<void> {
  const older = await nodesBelow(client, needs)
  if (older.length === 0) return
  throw refuse(
    'contract_blocked',
    `${name} removes what nodes older than version ${needs} use, and these are alive: ${older.join(', ')}. ` +
      'Stop or upgrade them, and run `cellkeep migrate` again 15 seconds later.',
  )
}

async function makeSchema(client: pg.Client, schema: string): Promise<void> {
  const refused = (what: string, remedy: string, error?: unknown) =>
    refuse(
      'migration_failed',
      `The database user may not create ${what}. Let an owner of the database run \`${remedy}\`, or set ` +
        'CELLKEEP_DATABASE_SCHEMA to a schema that this user owns.',
      error,
    )
  const { rows } = await client.query<{ may: boolean | null }>(
    `select has_schema_privilege(found, 'create') and has_schema_privilege(found, 'usage') as may
     from to_regnamespace($1) found`,
    [schema],
  )
  const may = rows[0]?.may
  if (may) return
  if (may === false)
    throw refused(`tables in the schema ${schema}`, `grant create, usage on schema ${schema} to USER`)
  await client.query(`create schema ${pg.escapeIdentifier(schema)}`).catch((error: pg.DatabaseError) => {
    if (error.code !== '42501') throw error
    throw refused(`the schema ${schema}`, `create schema ${schema} authorization USER`, error)
  })
}

/**
 * Refuses if a foreign object has the name of a table that the steps create: `if not exists` would take it for ours.
 */
export async function requireRoom(client: pg.Client, steps: readonly Step[]): Promise<void> {
  const made = steps.flatMap(({ text }) =>
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
      `The schema ${found.schema} holds ${found.tables}, which another program made. Nothing was changed. Set ` +
        `CELLKEEP_DATABASE_SCHEMA (\`database_schema\`) to a schema without them, such as ${found.schema === 'cellkeep' ? 'cellkeep_own' : 'cellkeep'}.`,
    )
}
