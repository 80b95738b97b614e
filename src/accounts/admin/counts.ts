import { z } from 'zod'
import { activeGrant } from '../../auth/active-grant.ts'
import { boundedCount, countedMax } from '../../db/bounded-count.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { pendingTo } from '../../offers/offers.ts'

/** What belongs to an account; each is counted to 1000. */
export const AccountCounts = z.object({
  sessions: z.int(),
  tokens: z.int(),
  /** Active ones of the actors that the account has, or had when it was deleted. */
  role_grants: z.int(),
  /** Pending offers to the account. */
  offers: z.int(),
  /** Live cells that its actors own. */
  cells: z.int(),
})
export type AccountCounts = z.output<typeof AccountCounts>

/** The counts of the account with this id, as one JSON value. */
export function accountCounts(account_id: Sql): Sql {
  const of = {
    sessions: sql`select from auth_session where account_id = ${account_id} and expires_at > now()`,
    tokens: sql`select from api_token where account_id = ${account_id}`,
    // Of an actor removed on its own they never work again; those of a deleted account return with it.
    role_grants: sql`
      select from actor cross join lateral (
        select from role_grant g where g.actor_id = actor.id and ${activeGrant}
      ) g
      where actor.account_id = ${account_id} and (actor.deleted_at is null or actor.deleted_with_account)`,
    offers: sql`select from role_grant_offer o where ${pendingTo(account_id)}`,
    // The order makes the planner use the index of owners, even if most cells of the table are theirs.
    cells: sql`
      select from actor cross join unnest(array['private', 'public']) as of (visibility) cross join lateral (
        select from cell c
        where c.created_by = actor.id and c.visibility = of.visibility and (c.deleted_at is null)
        order by c.created_at, c.id limit ${sql.raw(countedMax)}
      ) c where actor.account_id = ${account_id}`,
  }
  const pairs = Object.entries(of).map(([name, rows]) => sql`${sql.raw(`'${name}'`)}, ${boundedCount(rows)}`)
  return sql`json_build_object(${sql.join(pairs, ', ')})`
}
