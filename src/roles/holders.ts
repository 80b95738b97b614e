import { activeGrant, unendedGrant } from '../auth/active-grant.ts'
import type { CursorKey } from '../core/cursor.ts'
import { keyset } from '../core/page.ts'
import { boundedCount, countedMax } from '../db/bounded-count.ts'
import { type Sql, sql } from '../db/sql.ts'

/** Max grants of a role that one call examines; all of them may have expired or belong to deleted actors. */
export const examinedMax = 5000

/** Global grants first, then scope by scope, the oldest grant first; matches the index `role_grant_live_holder`. */
const order = {
  "coalesce(g.scope_id, '00000000-0000-0000-0000-000000000000')": 'uuid',
  "coalesce(g.scope_kind, '')": 'text',
  'g.created_at': 'timestamptz',
  'g.id': 'uuid',
} as const
const columns = Object.keys(order)

/** The place of `role_grant g` in that order. */
export const holderPlace = sql.raw(`(${columns.join(', ')})`)

/** The place of a row of `grantsOfRole`: to compare, to order by, and as the key of a cursor. */
export const place = sql`(at_scope, at_kind, at_time, at_id)`
export const inOrderOfPlace = sql`order by at_scope, at_kind, at_time, at_id`
export const placeKey = sql`json_build_array(at_scope, at_kind, iso_timestamp(at_time), at_id)`
const placeColumns = sql.raw(
  ['at_scope', 'at_kind', 'at_time', 'at_id'].map((name, nth) => `${columns[nth]} as ${name}`).join(', '),
)

/** Grants at exactly this scope, of any kind unless `scope_kind` is given. Global grants have the empty kind. */
export const atScope = (scope_id: Sql, scope_kind: string | null = null): Sql =>
  sql`${sql.raw(columns[0] as string)} = ${scope_id} and ${sql.raw(columns[1] as string)} ${
    scope_kind === null ? sql`> ''` : sql`= ${scope_kind}`
  }`

/**
 * The rows of `grantsOfRole`, each with its grant, actor and account. `is_live`: the grant is active, and its actor and
 * account are not deleted.
 */
export const liveHolders = (entries: Sql): Sql => sql`(${entries}) entry
  cross join lateral (select * from role_grant where id = at_id offset 0) g
  cross join lateral (select * from actor where id = g.actor_id offset 0) actor
  cross join lateral (select * from account where id = actor.account_id offset 0) account
  cross join lateral (
    select ${activeGrant} and actor.deleted_at is null and account.deleted_at is null as is_live offset 0
  ) judged`

/** The condition of global grants. */
export const everywhere = atScope(sql`'00000000-0000-0000-0000-000000000000'`, '')

/** Counts the active grants of a role to live actors, up to 1000, among the first `examinedMax` that have not ended. */
export const holderCount = (role: string, scope?: Sql): Sql =>
  boundedCount(sql`select from ${liveHolders(grantsOfRole(role, null, scope))} where is_live`)

/** How many live actors hold a role, each counted once, among the first 1000 such grants. */
export const actorCount = (role: Sql | string, scope: Sql): Sql => sql`(
  select count(distinct actor_id)::int from (
    select g.actor_id from ${liveHolders(grantsOfRole(role, null, scope))} where is_live
    limit ${sql.raw(countedMax)}
  ) counted)`

/**
 * The next grants of a role that have not ended: actor, place, and rank in the order as `nth`. Includes expired grants
 * and those of deleted actors. `<>` lets the index serve.
 */
export function grantsOfRole(role: Sql | string, after: CursorKey | null, scope: Sql = sql`true`): Sql {
  const { beyond, inOrder } = keyset({ after, limit: 1 }, order)
  return sql`
    select g.actor_id, ${placeColumns}, row_number() over (${inOrder}) as nth from role_grant g
    where g.role = ${role} and g.role <> '' and ${unendedGrant} and ${scope} and ${beyond}
    ${inOrder} limit ${sql.raw(examinedMax)}`
}
