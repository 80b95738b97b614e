import type pg from 'pg'
import { isServerFault } from '../db/servers/failure.ts'
import { quoted } from './format.ts'

/** A constraint or unique index that is dropped for a while, and the statements that restore it. */
export type Dropped = {
  table: string
  name: string
  isKey: boolean
  add: string
  /** A weaker form for when existing rows violate it: a plain index, or a check of new rows only. */
  instead: string
}

/** Drops the references between these tables. Two tables reference each other, so no order of loading works. */
export async function dropReferences(client: pg.Client, tables: readonly string[]): Promise<Dropped[]> {
  const found = await client.query<Dropped>(
    `${constraints} where contype = 'f' and conrelid = any($1::regclass[]) order by 1, 2`,
    [tables.map(quoted)],
  )
  for (const { table, name } of found.rows) await client.query(`alter table ${table} drop constraint ${name}`)
  return found.rows
}

/**
 * Drops every rule that could refuse a bad row, so that all rows can be loaded and the bad ones named. Keys come first
 * in the result, because references need them.
 */
export async function dropEveryRule(client: pg.Client): Promise<Dropped[]> {
  // Constraints of partitions come and go with those of their table.
  const own = `connamespace = current_schema()::regnamespace and contype in ('p', 'u', 'c', 'f')
    and conparentid = 0 and coninhcount = 0`
  const rules = await client.query<Dropped>(
    `${constraints} where ${own} order by array_position('{p,u,c,f}', contype::text), 1, 2`,
  )
  for (const { table, name } of rules.rows.toReversed())
    await client.query(`alter table ${table} drop constraint ${name}`)
  const indexes = await client.query<Dropped>(
    `select indrelid::regclass::text as table, indexrelid::regclass::text as name,
       true as "isKey", pg_get_indexdef(indexrelid) as add, replace(pg_get_indexdef(indexrelid), 'CREATE UNIQUE', 'CREATE') as instead
     from pg_index join pg_class on pg_class.oid = indexrelid
     where indisunique and not relispartition and relnamespace = current_schema()::regnamespace`,
  )
  for (const { name } of indexes.rows) await client.query(`drop index ${name}`)
  return [...indexes.rows, ...rules.rows]
}

const constraints = `
  select conrelid::regclass::text as table, quote_ident(conname) as name,
    contype in ('p', 'u') as "isKey", format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as add,
    case when contype in ('p', 'u')
      then format('create index on %s %s', conrelid::regclass, substring(pg_get_constraintdef(oid) from '\\(.*\\)'))
      else format('alter table %s add constraint %I %s not valid', conrelid::regclass, conname, pg_get_constraintdef(oid))
    end as instead
  from pg_constraint`

/** Adds them again. Those that existing rows violate get their weaker form, and are returned. */
export async function addAgain(client: pg.Client, dropped: readonly Dropped[]): Promise<Dropped[]> {
  const broken: Dropped[] = []
  for (const one of dropped) {
    await client.query('savepoint rule')
    try {
      await client.query(one.add)
    } catch (error) {
      if (isServerFault(error)) throw error
      broken.push(one)
      await client.query('rollback to rule')
      // A reference to a table without its key cannot be added at all.
      await client.query(one.instead).catch(() => client.query('rollback to rule'))
    }
    await client.query('release rule')
  }
  return broken
}
