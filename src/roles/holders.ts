import { unendedGrant } from '../auth/active-grant.ts'
import type { CursorKey } from '../core/cursor.ts'
import { keyset } from '../core/page.ts'
import { type Sql, sql } from '../db/sql.ts'

/** How many grants of a role one call examines at most; all of them may have expired, or be of deleted actors. */
export const examinedMax = 5000

/** Everywhere first, then scope by scope, the oldest grant first; matches the index `role_grant_live_role`. */
const order = {
  "coalesce(g.scope_id, '00000000-0000-0000-0000-000000000000')": 'uuid',
  "coalesce(g.scope_kind, '')": 'text',
  'g.created_at': 'timestamptz',
  'g.id': 'uuid',
} as const
const columns = Object.keys(order)

/** The place of `role_grant g` in that order. */
export const holderPlace = sql.raw(`(${columns.join(', ')})`)

/** The place of a row that `grantsOfRole` gave: to compare, to order by, and as the key of a cursor. */
export const place = sql`(at_scope, at_kind, at_time, at_id)`
export const inOrderOfPlace = sql`order by at_scope, at_kind, at_time, at_id`
export const placeKey = sql`json_build_array(at_scope, at_kind, iso_timestamp(at_time), at_id)`
const placeColumns = sql.raw(
  ['at_scope', 'at_kind', 'at_time', 'at_id'].map((name, nth) => `${columns[nth]} as ${name}`).join(', '),
)

/**
 * The next grants of a role that have not ended: actor, place, and rank in the order as `nth`. Expired ones and those
 * of deleted actors are among them.
 */
export function grantsOfRole(role: string, after: CursorKey | null, scope: Sql = sql`true`): Sql {
  const { beyond, inOrder } = keyset({ after, limit: 1 }, order)
  return sql`
    select g.actor_id, ${placeColumns}, row_number() over (${inOrder}) as nth from role_grant g
    where g.role = ${role} and ${unendedGrant} and ${scope} and ${beyond}
    ${inOrder} limit ${sql.raw(examinedMax)}`
}
