import type pg from 'pg'
import { isOlder, refuse, type Step } from './steps.ts'

/** A step that the database has, or has begun. */
type StepRecord = { name: string; needs: string | null; state: 'running' | 'done' }

/** Whether the search path leads to a table of this name. */
export async function hasTable(client: pg.Client, name: string): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>('select to_regclass($1) is not null as found', [
    name,
  ])
  return rows[0]?.found === true
}

/** Also reads tables of old versions whose records had only a name; those steps are done. */
export async function readRecords(client: pg.Client): Promise<StepRecord[]> {
  if (!(await hasTable(client, 'schema_migration'))) return []
  const { rows } = await client.query<StepRecord>(
    `select name, to_jsonb(m) ->> 'needs' as needs, coalesce(to_jsonb(m) ->> 'state', 'done') as state
     from schema_migration m order by name`,
  )
  return rows
}

/** Makes the table or adds its newer columns; takes no lock if nothing is missing. */
export async function makeRecords(client: pg.Client): Promise<void> {
  const { rows } = await client.query(
    `select from pg_attribute where attrelid = to_regclass('schema_migration') and attname = 'cursor'`,
  )
  if (rows.length > 0) return
  await client.query(`
    create table if not exists schema_migration (
      name text collate "C" primary key, applied_at timestamptz(3) not null default now());
    alter table schema_migration
      add column kind text collate "C" not null default 'expand',
      add column needs text collate "C",
      add column state text collate "C" not null default 'done',
      add column started_at timestamptz(3),
      add column done_at timestamptz(3),
      add column done_rows bigint,
      add column total_rows bigint,
      add column cursor jsonb,
      add constraint schema_migration_kind check (kind in ('expand', 'index', 'backfill', 'contract')),
      add constraint schema_migration_state check (state in ('running', 'done'))`)
}

export async function recordDone(client: pg.Client, { name, kind, needs }: Step): Promise<void> {
  await client.query(
    `insert into schema_migration (name, kind, needs, started_at, done_at) values ($1, $2, $3, now(), clock_timestamp())
     on conflict (name) do update set state = 'done', done_at = clock_timestamp()`,
    [name, kind, needs],
  )
}

export async function recordBegun(client: pg.Client, { name, kind, needs }: Step): Promise<void> {
  await client.query(
    `insert into schema_migration (name, kind, needs, state, started_at) values ($1, $2, $3, 'running', now())
     on conflict (name) do nothing`,
    [name, kind, needs],
  )
}

/** What is left to do, and the steps of newer versions that the database has. */
export type Comparison = { pending: Step[]; newer: string[] }

/** Throws unless the records are those of this version or of a compatible one. */
export function compare(steps: readonly Step[], records: readonly StepRecord[], version: string): Comparison {
  const known = new Map(steps.map((step) => [step.name, step]))
  const done = new Set(records.filter(({ state }) => state === 'done').map(({ name }) => name))
  const unknown = records.filter(({ name }) => !known.has(name))
  const expand = steps.filter(({ kind }) => kind === 'expand')
  const isComplete = expand.every(({ name }) => done.has(name))
  if (isComplete) requireCompatible(unknown, version)
  else {
    // Only steps of other kinds may be missing.
    const chain = records.filter(({ name }) => (known.get(name)?.kind ?? 'expand') === 'expand')
    const at = chain.findIndex(({ name }, index) => name !== expand[index]?.name)
    if (at >= 0)
      throw refuse(
        'migration_name_divergence',
        `The database records ${chain[at]?.name} where this version has ${expand[at]?.name ?? 'no migration'}. ` +
          'It belongs to another program or branch. Use the version that made it, or another database.',
      )
  }
  return {
    pending: steps.filter(({ name }) => !done.has(name)),
    newer: unknown.map(({ name }) => name),
  }
}

/** Steps recorded without a kind say nothing about which versions may run beside them. */
function requireCompatible(unknown: readonly StepRecord[], version: string): void {
  const above = unknown.filter(({ needs }) => needs === null || isOlder(version, needs))
  if (above.length === 0) return
  const named = above.map(({ name, needs }) => (needs === null ? name : `${name} needs ${needs}`))
  throw refuse(
    'binary_older_than_db',
    `This database was migrated by a newer version, and this version, ${version}, no longer works with it ` +
      `(${named.join(', ')}). Install that version or a later one.`,
  )
}
