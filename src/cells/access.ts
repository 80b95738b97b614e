import { activeGrant } from '../auth/active-grant.ts'
import { type Sql, sql } from '../db/sql.ts'

/**
 * The access rule of cells. Every statement that reads or writes a cell for a caller evaluates it, as of the
 * time of that statement. There is no second copy in TypeScript.
 */

/**
 * The caller as a common table expression: `with ${me(actor_id)} select … from cell c, me`. `principals` are
 * the keys under which cell grants admit the actor; an anonymous caller has none. `inline` reads role grants only when
 * a row needs them, but again for each place in the statement.
 */
export const me = (actor_id: string | null | Sql, how: 'once' | 'inline' = 'once'): Sql => sql`me as ${
  how === 'once' ? sql`materialized` : sql`not materialized`
} (
  select caller.id as actor_id,
    exists (
      select from role_grant g
      where g.actor_id = caller.id and g.role = 'admin' and g.scope_id is null and ${activeGrant}
    ) as is_admin,
    array_remove('a:' || caller.id || array(
      select distinct k.key
      from role_grant g cross join lateral (values ('r:*:' || g.role), ('r:' || g.scope_id || ':' || g.role)) k (key)
      where g.actor_id = caller.id and ${activeGrant}
    ), null) as principals
  from (select ${actor_id}::uuid as id) caller
)`

/**
 * A from clause: the grants `g` of the cell with this alias that admit the caller. It probes each by its whole
 * key. Given `cell_id = …` the planner may pick any index that starts with that column, and would then read all
 * ten thousand grants of a widely shared cell for every caller.
 */
export const admitting = (
  alias: string,
  principals = 'me.principals',
): Sql => sql`unnest(${sql.raw(principals)}) as k (principal) join lateral (
  select * from cell_grant where (cell_id, principal) >= (${sql.raw(alias)}.id, k.principal)
  order by cell_id, principal limit 1
) g on g.cell_id = ${sql.raw(alias)}.id and g.principal = k.principal`

/**
 * The principals of the caller, first the one in the column `via`, by which the cell was found: a caller with fifty roles
 * has fifty principals.
 */
export const viaFirst = (via: string): string =>
  `case when ${via} = any(me.principals) then ${via} || me.principals else me.principals end`

/** Max principals that are always probed, and max grants of a cell that are read so as to probe fewer. */
const [probedMax, grantsMax] = [8, 64]

/** Whether a caller may have more principals than are probed. */
export const hasManyPrincipals = (role_grants: readonly unknown[]): boolean =>
  1 + 2 * role_grants.length > probedMax

/**
 * The principals of the caller that the grants of the cell with this alias name; all of them, if they are few or the
 * grants are many. Most cells have few grants, and probing a thousand principals on each of thousands of cells would take
 * seconds.
 */
export const principalsNamed = (
  alias: string,
): string => `case when cardinality(me.principals) <= ${probedMax}
  then me.principals else (
    select case when count(*) > ${grantsMax} then me.principals else
      array_agg(of_cell.principal) filter (where of_cell.principal in (select unnest(principals) from me)) end
    from (
      select principal from cell_grant where (cell_id, principal) >= (${alias}.id, '') and cell_id <= ${alias}.id
      order by cell_id, principal limit ${grantsMax + 1}
    ) of_cell
  ) end`

/**
 * The tiers of the caller on the cell with this alias. Each needs `me` in the statement and is never null. `principals`
 * are those to try, as `viaFirst` and `principalsNamed` make them.
 */
export function tiers(
  alias: string,
  principals?: string,
): {
  live: Sql
  owner: Sql
  held: Sql
  /** The tier that one of the admitting grants `g` gives. */
  given: Sql
  view: Sql
  edit: Sql
  manage: Sql
} {
  const c = sql.raw(alias)
  const live = sql`${c}.deleted_at is null`
  const owner = sql`coalesce(${c}.created_by = me.actor_id, false)`
  const held = sql`exists (select from ${admitting(alias, principals)})`
  const editing = sql`exists (select from ${admitting(alias, principals)} where g.level = 'editor')`
  return {
    live,
    owner,
    held,
    given: sql`case when g.level = 'editor' and ${c}.created_by is not null then 'edit' else 'view' end`,
    view: sql`(${live} and (${c}.visibility = 'public' or ${owner} or me.is_admin or ${held}))`,
    edit: sql`(${live} and (me.is_admin or (${c}.created_by is not null and (${owner} or ${editing}))))`,
    manage: sql`(${live} and (me.is_admin or ${owner}))`,
  }
}

/** The tiers on `cell c`. */
export const tier = tiers('c')

/** The same on each of many cells, or for a caller with many principals. */
export const tiersOfMany = (alias: string): ReturnType<typeof tiers> => tiers(alias, principalsNamed(alias))

/**
 * Writes the row of a cell without changing it. For statements that take away a right on the cell, whose id `cell_ids`
 * selects. See `isUntouched`.
 */
export const touched = (cell_ids: Sql): Sql => sql`touched as (
  update cell c set version = c.version from (${cell_ids}) taken (id) where c.id = taken.id
)`

/**
 * A condition of a statement that checks the rights on `cell c` and locks it: nobody has written or touched the cell
 * since the statement began. After a wait PostgreSQL evaluates it again with the newest `c`, while the subquery still
 * reads the statement's snapshot.
 */
export const isUntouched = sql`c.ctid = (select before.ctid from cell before where before.id = c.id)`
