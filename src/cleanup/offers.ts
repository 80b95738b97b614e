import { type Queryable, sql } from '../db/db.ts'
import { unstamped } from '../offers/offers.ts'

/**
 * Stamps at most `max` lapsed offers as expired and returns how many. One statement writes the stamps and their
 * audit rows: if it fails, no offer is stamped and the next run tries again.
 */
export async function expireOffers(db: Queryable, max: number): Promise<number> {
  const { stamped } = await db.one<{ stamped: number }>(sql`
    with lapsed as (
      select offer_id from role_grant_offer where ${unstamped} and expires_at <= statement_timestamp()
      order by expires_at limit ${sql.raw(max)} for update skip locked
    ), stamped as (
      update role_grant_offer o set expired_at = now()
      from lapsed where o.offer_id = lapsed.offer_id
      returning o.*
    ), entries as (
      select count(*) as stamped, coalesce(json_agg(json_build_object(
        'event_type', 'role_grant_offer_expire', 'outcome', 'success',
        'actor_id', from_actor_id, 'account_id', from_account_id,
        'target_actor_id', to_actor_id, 'target_account_id', to_account_id,
        'metadata', json_build_object('offer_id', offer_id, 'role', role, 'scope_kind', scope_kind,
          'scope_id', scope_id)) order by offer_id), '[]') as rows
      from stamped
    )
    select stamped, audit_insert(rows) from entries`)
  return stamped
}
