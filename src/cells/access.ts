import { activeGrant } from '../auth/active-grant.ts'
import { type Sql, sql } from '../db/sql.ts'

/**
 * The access rule of cells. Every statement that reads or writes a cell for a caller evaluates it, as of the
 * time of that statement. There is no second copy in TypeScript.
 */

/**
 * The caller as a common table expression: `with ${me(actor_id)} select … from cell c, me`. `principals` are
 * the keys under which cell grants admit the actor, in the order of their bytes; an anonymous caller has none.
 */
export const me = (actor_id: string | null | Sql): Sql => sql`me as materialized (
  select caller.id as actor_id,
    coalesce(bool_or(g.role = 'admin' and g.scope_id is null), false) as is_admin,
    array_remove(
      array['a:' || caller.id] || array_agg(distinct held.anywhere order by held.anywhere)
        || array_agg(distinct held.there order by held.there),
      null
    ) as principals
  from (select ${actor_id}::uuid as id) caller left join role_grant g on g.actor_id = caller.id and ${activeGrant}
    cross join lateral (select 'r:*:' || g.role as anywhere, 'r:' || g.scope_id || ':' || g.role as there) held
  group by caller.id
)`

/** Up to so many principals are looked up one by one. */
const fewPrincipals = 8

/**
 * A from clause: the grants `g` of the cell with this alias that admit the caller. It probes each by its whole
 * key. Given `cell_id = …` the planner may pick any index that starts with that column, and would then read all
 * ten thousand grants of a widely shared cell for every caller.
 *
 * For a caller with many principals, `leap` goes by turns: to the first grant at or behind a principal, then to the
 * first principal behind that grant. So it takes no more steps than the cell has grants or the caller principals,
 * whichever are fewer; most cells have none.
 */
export function admitting(alias: string): Sql {
  const cell_id = sql.raw(`${alias}.id`)
  const from = (principal: Sql): Sql => sql`cell_grant g
    where (g.cell_id, g.principal) >= (${cell_id}, ${principal}) order by g.cell_id, g.principal limit 1`
  const grant = (principal: Sql): Sql => sql`lateral (select * from ${from(principal)}) g`
  const next = (principal: Sql): Sql =>
    sql`(select case when g.cell_id = ${cell_id} then g.principal end from ${from(principal)})`
  const few = sql`cardinality(me.principals) <= ${sql.raw(fewPrincipals)}`
  // How many principals are not behind that of the grant.
  const passed = sql`width_bucket(leap.principal, me.principals)`
  return sql`lateral (
    select g.* from unnest(me.principals) as k (principal) cross join ${grant(sql`k.principal`)}
    where ${few} and g.cell_id = ${cell_id} and g.principal = k.principal
    union all (
      with recursive leap as (
        select ${next(sql`me.principals[1]`)} as principal
        union all
        select ${next(sql`me.principals[${passed} + 1]`)} from leap where leap.principal is not null
      )
      select g.* from leap cross join ${grant(sql`leap.principal`)}
      where not (${few}) and leap.principal = me.principals[${passed}]
    )
  ) g`
}

/** The tiers of the caller on the cell with this alias. Each needs `me` in the statement and is never null. */
export function tiers(alias: string): {
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
  const held = sql`exists (select from ${admitting(alias)})`
  const editing = sql`exists (select from ${admitting(alias)} where g.level = 'editor')`
  return {
    live,
    owner,
    held,
    given: sql`case when g.level = 'editor' and ${c}.created_by is not null then 'edit' else 'view' end`,
    view: sql`(${live} and (me.is_admin or ${c}.visibility = 'public' or ${owner} or ${held}))`,
    edit: sql`(${live} and (me.is_admin or (${c}.created_by is not null and (${owner} or ${editing}))))`,
    manage: sql`(${live} and (me.is_admin or ${owner}))`,
  }
}

/** The tiers on `cell c`. */
export const tier = tiers('c')
