import type { Audit } from '../../audit/audit.ts'
import type { Work } from '../../core/mutate.ts'
import type { SharedStatement, Single } from '../../core/single.ts'
import { briefly, type Queryable, type Sql, sql } from '../../db/db.ts'
import { brokenConstraint } from '../../db/servers/failure.ts'
import { unplanned } from '../../db/unplanned.ts'
import { refusal } from '../../errors.ts'
import { isUntouched, me, tier, tiers } from '../access.ts'
import { type Edges, edgeColumns, type Item, isLive, itemEdges } from './edges.ts'
import { isNearlyFull } from './room.ts'

/** A call that adds an edge: who links which cells by which name or position, and how many edges the anchor may have. */
export type Link = { actor_id: string; anchor_id: string; far_id: string; key: string; max: number | null }

/** A condition on `cell c, cell far, me`: the caller may link the cells with these ids. */
const linkable = (anchor_id: Sql, far_id: Sql): Sql =>
  sql`c.id = ${anchor_id} and ${tier.edit} and far.id = ${far_id} and ${tiers('far').view}`
const isLinkable = ({ anchor_id, far_id }: Link): Sql =>
  linkable(sql`${anchor_id}::uuid`, sql`${far_id}::uuid`)

/**
 * Locks the anchor if the caller may link the cells, and resolves to the columns that `what` selects from `cell c`,
 * which may be joined with more.
 */
export const lockAnchor = <T>(
  db: Queryable,
  link: Link,
  what: Sql,
  joins: Sql = sql.empty,
): Promise<T | undefined> =>
  db.first<T>(sql`
    with ${me(link.actor_id)}
    select ${what} from cell c ${joins}, cell far, me where ${isLinkable(link)} for share of c`)

/**
 * `ends (anchor_id, far_id, key)` as common table expressions: a row if the caller, who holds the lock of the anchor, may
 * link the cells.
 */
export const endsOf = (link: Link): Sql => sql`${me(link.actor_id)}, ends as (
  select c.id as anchor_id, far.id as far_id, ${link.key} as key from cell c, cell far, me where ${isLinkable(link)}
)`

/** Adds an edge in a statement that is all of its call, or that it shares with its neighbours. */
export type AddAtOnce<T> = (
  single: Single,
  link: Link,
  record: (audit: Audit) => void,
) => Promise<T | undefined>

/**
 * `adding` is a common table expression `added` that inserts edges from `ends`: those whose caller may link the cells and
 * whose anchor has room. It never waits for the row lock of an anchor: the transaction that holds it may take away a right
 * that this statement has already checked. Room is checked in a step of its own, because how long the walk through the
 * edges of a full cell takes would reveal them to callers who may not view the cell. Returns undefined if nothing was added.
 */
export function addAtOnce<T>(edges: Edges, adding: Sql): AddAtOnce<T> {
  const { from, key } = edges
  const each = (links: readonly Link[], name: 'anchor_id' | 'far_id' | 'key' | 'actor_id') =>
    links.map((link) => link[name])
  const statement = (links: readonly Link[], joined: Sql = sql.empty) => sql`asked as (
      select distinct on (anchor_id, key) asked.* from unnest(${unplanned(each(links, 'anchor_id'), 'uuid[]')},
        ${each(links, 'far_id')}::uuid[], ${each(links, 'key')}::text[], ${each(links, 'actor_id')}::uuid[]
      ) with ordinality as asked (anchor_id, far_id, key, actor_id, nth)${joined}
      order by anchor_id, key, nth
    ), locked as materialized (
      select asked.key, one.* from asked cross join lateral (
        with ${me(sql`asked.actor_id`)}
        select c.id as anchor_id, far.id as far_id, ${isNearlyFull(edges, links[0]?.max ?? null)} as is_nearly_full
        from cell c, cell far, me
        where ${linkable(sql`asked.anchor_id`, sql`asked.far_id`)} and ${isUntouched}
        for share of c skip locked
      ) one
    ), ends as (select * from locked where not is_nearly_full), ${adding}, stored as (
      select asked.nth, added.* from added join asked
      on asked.anchor_id = added.${sql.raw(from)} and asked.key = added.${sql.raw(key)}
    )`
  const write: SharedStatement<Link> = {
    max: 16,
    isFinal: true,
    statement: (links) => statement(links, sql`, ${briefly}`),
  }
  const own = sql`own as (select ${edgeColumns(edges, 'stored')} from stored)`
  return (single, link, record) =>
    single<T, Link>(sql`${statement([link])}, ${own}`, 'own', record, { write, key: link }).catch(
      refusePurged,
    )
}

type Key = { actor_id: string; anchor_id: string; key: string }

/**
 * Deletes the live edge at a key and resolves to its far cell, or null if there is none. Refuses if the caller may
 * not edit the anchor; the far cell need not be visible. It locks the anchor without waiting, as `addAtOnce` does;
 * where that deletes nothing, the lock decides. Both statements then check the tier, so that a right that is lost in
 * between does not count.
 */
export async function removeEdge(
  { db, single, audit }: Pick<Work, 'db' | 'single' | 'audit'>,
  edges: Edges,
  { actor_id, anchor_id, key }: Key,
  record: (audit: Audit, far_id: string) => void,
): Promise<string | null> {
  const table = sql.raw(edges.table)
  const isIt = sql`e.${sql.raw(edges.from)} = c.id and e.${sql.raw(edges.key)} = ${key} and ${isLive(edges, 'e')}`
  const removing = sql`removed as (delete from ${table} e using c where ${isIt} returning e.${sql.raw(edges.to)} as far_id)`
  const editable = sql`c.id = ${anchor_id}::uuid and ${tier.edit}`
  const done = await single<{ far_id: string }>(
    sql`${me(actor_id)}, c as (
      select c.id from cell c, me where ${editable} and ${isUntouched} for share of c skip locked
    ), ${removing}`,
    'removed',
    (audit, found) => record(audit, found('far_id')),
  )
  if (done) return done.far_id

  const locked = await db.first<{ is_there: boolean }>(sql`
    with ${me(actor_id)}
    select exists (select from ${table} e where ${isIt}) as is_there from cell c, me where ${editable} for share of c`)
  if (!locked) throw refusal('cell_not_found')
  if (!locked.is_there) return null
  const removed = await db.first<{ far_id: string | null }>(sql`
    with ${me(actor_id)}, c as (select c.id from cell c, me where ${editable}), ${removing}
    select removed.far_id from c left join removed on true`)
  if (!removed) throw refusal('cell_not_found')
  if (removed.far_id !== null) record(audit, removed.far_id)
  return removed.far_id
}

/**
 * `added` as a common table expression: puts each `item` of another one, of `parent_id`, `position`, `child_id` and
 * `created_at`, at its position if that is free or held by an item whose child is deleted.
 */
export const placing = sql`added as (
  insert into cell_item as held (parent_id, position, child_id, created_at)
  select parent_id, position, child_id, created_at from item
  on conflict (parent_id, position) do update
    set child_id = excluded.child_id, created_at = excluded.created_at
    where not ${isLive(itemEdges, 'held')}
  returning ${edgeColumns(itemEdges, 'held')}
)`

/** Runs common table expressions that end in `placing`; without an `item`, the caller lacks the right. */
export async function placeItem(db: Queryable, expressions: Sql): Promise<Item> {
  const placed = await db
    .first<Item | { [K in keyof Item]: null }>(sql`
      with ${expressions} select added.* from item left join added on true`)
    .catch(refusePurged)
  if (!placed) throw refusal('cell_not_found')
  if (placed.parent_id === null) throw refusal('cell_item_position_taken')
  return placed
}

/** Refuses a far cell that was purged while the edge was written like any other missing cell. */
export function refusePurged(error: unknown): never {
  throw brokenConstraint(error)?.endsWith('_fkey') ? refusal('cell_not_found') : error
}
