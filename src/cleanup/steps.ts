import { type Queryable, sql } from '../db/db.ts'
import { unstamped } from '../offers/offers.ts'

/** Removes at most `max` idempotency keys that have expired. */
export const forgetKeys = (db: Queryable, max: number): Promise<number> =>
  db.run(sql`
    delete from idempotency_key where (account_id, key_hash) in (
      select account_id, key_hash from idempotency_key where expires_at <= now()
      order by expires_at limit ${sql.raw(max)} for update skip locked)`)

/** Removes at most `max` charges from before the clock was set back: they would refuse callers until it is there again. */
export const removeChargesAhead = (db: Queryable, max: number): Promise<number> =>
  db.run(sql`
    delete from limiter_charge where id in (
      select id from limiter_charge where at > now() + interval '1 minute'
      limit ${sql.raw(max)} for update skip locked)`)

/** Makes at most `max` messages due that were put off before the clock was set back: no pause is longer than an hour. */
export const bringForwardMessages = (db: Queryable, max: number): Promise<number> =>
  db.run(sql`
    update message_outbox set next_attempt_at = now(), leased_until = null where id in (
      select id from message_outbox
      where state = 'queued' and next_attempt_at > now() + interval '2 hours' and expires_at > now()
      limit ${sql.raw(max)} for update skip locked)`)

/**
 * Removes at most `max` one-time links that ended more than 30 days ago. The index of their creation times finds them,
 * because none ends before it is made.
 */
export const removeTickets = (db: Queryable, max: number): Promise<number> =>
  db.run(sql`
    delete from account_ticket where id in (
      select id from account_ticket
      where created_at <= now() - interval '30 days'
        and coalesce(used_at, voided_at, expires_at) <= now() - interval '30 days'
      order by created_at limit ${sql.raw(max)} for update skip locked)`)

/** Removes at most `max` messages that ended 7 days ago: where no transport is set up, nothing finishes an expired one. */
export const removeMessages = (db: Queryable, max: number): Promise<number> =>
  db.run(sql`
    delete from message_outbox where id in (
      select id from message_outbox
      where created_at <= now() - interval '7 days'
        and coalesce(finished_at, expires_at) <= now() - interval '7 days'
      order by created_at limit ${sql.raw(max)} for update skip locked)`)

/**
 * Stamps at most `max` lapsed offers as expired and returns how many. One statement writes the stamps and their
 * audit rows: if it fails, no offer is stamped and the next run tries again.
 */
export async function expireOffers(db: Queryable, max: number): Promise<number> {
  const { stamped } = await db.one<{ stamped: number }>(sql`
    with lapsed as (
      -- The lower bound lets only the index of the ends serve.
      select offer_id from role_grant_offer
      where ${unstamped} and expires_at > '-infinity' and expires_at <= statement_timestamp()
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

/**
 * Deletes at most `max` audit rows with numbers above `after` that are older than `days`, with their places in
 * timelines, and returns how many. Stores the highest number deleted: by it, streams and replay tell a gap from numbers
 * never used.
 */
export async function removeAuditRows(
  db: Queryable,
  days: number,
  after: number,
  max: number,
): Promise<number> {
  const { removed } = await db.one<{ removed: number }>(sql`
    with old as (
      select seq, cell_ids from audit_log
      where seq > ${after}::bigint and created_at <= now() - ${days}::int * interval '1 day'
      order by created_at limit ${sql.raw(max)}
    ), gone as (
      delete from audit_log l using old where l.seq = old.seq returning l.seq
    ), timelines as (
      delete from audit_cell m using (select seq, unnest(cell_ids) as cell_id from old) place
      where m.cell_id = place.cell_id and m.seq = place.seq
    ), kept as (
      update audit_position set removed_seq = greatest(removed_seq, (select max(seq) from gone))
      where exists (select from gone)
    )
    select count(*) as removed from gone`)
  return removed
}
