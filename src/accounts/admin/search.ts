import { activeGrant } from '../../auth/active-grant.ts'
import type { CursorKey } from '../../core/cursor.ts'
import { pageSize } from '../../core/page.ts'
import { hasPrefix } from '../../db/prefix.ts'
import { type Sql, sql } from '../../db/sql.ts'
import {
  examinedMax,
  grantsOfRole,
  holderPlace,
  inOrderOfPlace,
  place,
  placeKey,
} from '../../roles/holders.ts'
import { adminAccountColumns } from '../accounts.ts'
import { fold, identifierOf } from '../formats.ts'

/** A search has a query or a role, or both. */
export type AccountFilter = {
  include_deleted: boolean
  query?: string | undefined
  role?: string | undefined
}

/** `key` is the row's place in the order. A row that does not match only marks its place. */
export type Found = { key: CursorKey; is_match: boolean; is_end: boolean }

/** Base64url, because a name of 254 bytes might not fit into a cursor with the escapes of JSON. */
export const placeOf = ({ query }: AccountFilter, { key }: Found): CursorKey =>
  query === undefined ? key : [Buffer.from(key[0] as string).toString('base64url')]

/** `actor` is one that admins see with its account: a live one, or one that was deleted together with the account. */
export const isShown = (account: Sql): Sql =>
  sql`(actor.deleted_at is null or (${account}.deleted_at is not null and actor.deleted_with_account))`

/**
 * The accounts whose username or e-mail begins with the query, in the order of what matched; without a query the
 * holders of the role, in the order of their grants. Each walks one index and probes the rest. A page ends early
 * when it has examined its maximum, so that no search reads many thousands of accounts that do not match.
 */
export function foundAccounts(
  { include_deleted, query, role }: AccountFilter,
  { after, limit }: { after: CursorKey | null; limit: number },
): Sql {
  const { entries, matches, key, inOrder } =
    query === undefined ? holders(role as string, after) : named(query, role, after)
  const isEnd = sql`entry.nth = ${sql.raw(examinedMax)}`
  return sql`
    select ${adminAccountColumns}, json_build_object(
      'key', ${key}, 'nth', entry.nth, 'is_match', is_match, 'is_end', ${isEnd}) as found
    from (${entries}) entry
      cross join lateral (select * from account where id = entry.account_id offset 0) account
      cross join lateral (
        select ${include_deleted ? matches : sql`account.deleted_at is null and ${matches}`} as is_match
      ) judged
    where is_match or ${isEnd}
    ${inOrder} limit ${sql.raw(pageSize(limit))}`
}

/** Entries of an index, numbered in its order as `nth`; `matches` judges the account of `entry`. */
type Walk = { entries: Sql; matches: Sql; key: Sql; inOrder: Sql }

/** An account with several such grants is found by its first one. */
function holders(role: string, after: CursorKey | null): Walk {
  return {
    entries: sql`
      select actor.account_id, g.* from (${grantsOfRole(role, after)}) g cross join lateral (
        select account_id from actor where id = g.actor_id offset 0
      ) actor`,
    matches: sql`${holds(role, sql`g.id = at_id`)} and not ${holds(role, sql`${holderPlace} < ${place}`)}`,
    key: placeKey,
    inOrder: inOrderOfPlace,
  }
}

function named(query: string, role: string | undefined, after: CursorKey | null): Walk {
  const { kind, key } = identifierOf(query)
  const from = after && fold(Buffer.from(after[0] as string, 'base64url').toString())
  const branch = (column: Sql, prefix: string): Sql => sql`(
    select id as account_id, ${column} as name from account
    where ${hasPrefix(column, prefix)} and ${from === null ? sql`true` : sql`${column} > ${from}`}
    order by ${column} limit ${sql.raw(examinedMax)})`
  const byEmail = branch(sql`email_key`, fold(query))
  const byName = sql`${branch(sql`username`, key)} union all ${byEmail}`
  // An account whose username and e-mail both match is found by its username.
  const isOnce = sql`(entry.name = account.username or not (${hasPrefix(sql`account.username`, key)}))`
  return {
    entries: sql`
      select *, row_number() over (order by name) as nth
      from (${kind === 'email' ? byEmail : byName}) named order by name limit ${sql.raw(examinedMax)}`,
    matches: sql`${isOnce} and ${role === undefined ? sql`true` : holds(role)}`,
    // Folding may make an e-mail longer than a cursor can hold, so those are continued from as they were given.
    key: sql`json_build_array(case when octet_length(entry.name) <= 254 then entry.name else account.email end)`,
    inOrder: sql`order by entry.name`,
  }
}

/**
 * Whether an actor that admins see with the account has an active grant of the role, probed actor by actor. All but the
 * actor is judged outside the probe: with old statistics, a planner would else read all live grants for each account.
 */
const holds = (role: string, which: Sql = sql`true`): Sql => sql`exists (
  select from actor cross join lateral (select * from role_grant where actor_id = actor.id offset 0) g
  where actor.account_id = account.id and ${isShown(sql`account`)} and g.role = ${role} and ${activeGrant} and ${which})`
