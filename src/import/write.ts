import { randomUUID } from 'node:crypto'
import { isReserved } from '../accounts/usernames.ts'
import { type Queryable, sql } from '../db/db.ts'
import { raiseFloor } from './floor.ts'
import type { Row } from './line.ts'

export type Batch = {
  source: string
  /** Their external ids differ. */
  rows: readonly (Row & { hash_foreign: boolean })[]
  /** How long a failed login must take from now on because of the hashes of these rows. */
  floorMs: number
}

type Taken = { line: number; reason: 'username_taken' | 'email_taken' }
export type Written = { made: { id: string; line: number }[]; taken: Taken[] }

/**
 * Makes the accounts of a batch without waiting for the disk: the next run repeats what a crash of the database loses,
 * and `settle` waits once at the end. Lines that are neither made nor taken were imported before. A lock lets one
 * import of a source write at a time. Two sources insert the same usernames in order; if the same e-mails make them
 * deadlock, the transaction runs again.
 */
export async function writeBatch(db: Queryable, { source, rows: given, floorMs }: Batch): Promise<Written> {
  const rows = given.map((row) => ({ id: randomUUID(), ...row }))
  const ids = rows.map(({ id }) => id)
  // All in one round trip; if one fails, all fail.
  const [, , lines, reserved] = await Promise.all([
    db.run(sql`
      select pg_advisory_xact_lock(hashtextextended('cellkeep import ' || ${source}, 0)),
        set_config('synchronous_commit', 'off', true)`),
    rows.some((row) => row.hash_foreign) && raiseFloor(db, floorMs),
    insert(db, source, rows),
    removeReserved(db, ids),
  ])
  const made: Written['made'] = []
  const taken: Taken[] = []
  const clashing = new Set<number>()
  for (const { line, account_id: id, is_known } of lines) {
    if (id === null) {
      if (!is_known) clashing.add(line)
    } else if (reserved.has(id)) taken.push({ line, reason: 'username_taken' })
    else made.push({ id, line })
  }
  const lost = rows.filter(({ line }) => clashing.has(line))
  if (lost.length > 0) taken.push(...(await reasonsOf(db, lost)))
  return { made, taken }
}

const insert = (db: Queryable, source: string, rows: readonly object[]) =>
  db.rows<{ line: number; account_id: string | null; is_known: boolean }>(sql`
    with line as materialized (
      select * from json_to_recordset(${JSON.stringify(rows)}::json) as line (
        id uuid, line integer, external_id text, username text, email text, email_key text, email_verified boolean,
        password_hash text, hash_foreign boolean, created_at timestamptz, actor_name text, name_key text)
    ), known as (
      select line.line from line cross join lateral (
        select from account_import where source = ${source} and external_id = line.external_id offset 0
      ) i
    ), made as (
      insert into account (id, username, email, email_key, email_verified, password_hash, hash_foreign, created_at)
      select id, username, email, email_key, email_verified, password_hash, hash_foreign,
        coalesce(created_at, now())
      from line where line not in (select line from known) order by username
      on conflict do nothing returning id
    ), actors as (
      insert into actor (account_id, name, name_key)
      select id, actor_name, name_key from line join made using (id)
    ), noted as (
      insert into account_import (source, external_id, account_id)
      select ${source}, external_id, id from line join made using (id)
    )
    select line, made.id as account_id, known.line is not null as is_known
    from line left join made using (id) left join known using (line)`)

/** A commit that waits for the disk, and thereby for all commits before it. */
export const settle = (db: Queryable): Promise<unknown> =>
  db.run(sql`update app_settings set import_floor_ms = import_floor_ms where id = 1`)

/**
 * Without statistics the planner takes most accounts for deleted, and lists would read all of them until autovacuum has
 * been here, which it will also be if this fails.
 */
export const gatherStatistics = (db: Queryable): Promise<unknown> =>
  db.run(sql`analyze account, actor, account_import`).catch(() => undefined)

/** Checked after the accounts are written: a reservation made meanwhile has committed by now. */
async function removeReserved(db: Queryable, ids: readonly string[]): Promise<Set<string>> {
  const rows = await db.rows<{ id: string }>(sql`
    delete from account where id = any(${[...ids]}::uuid[]) and ${isReserved(sql`account.username`)} returning id`)
  return new Set(rows.map(({ id }) => id))
}

const reasonsOf = (db: Queryable, rows: readonly Row[]): Promise<Taken[]> =>
  db.rows<Taken>(sql`
    select line, case when exists (select from account where username = asked.username)
      then 'username_taken' else 'email_taken' end as reason
    from unnest(${rows.map(({ line }) => line)}::integer[], ${rows.map(({ username }) => username)}::text[])
      as asked (line, username)
    order by line`)
