import { z } from 'zod'
import { mutation } from '../../core/declare.ts'
import type { Work } from '../../core/mutate.ts'
import { type Detail, onlyVia } from '../../core/operate.ts'
import { account, operation } from '../../core/operation.ts'
import { type Queryable, type Sql, sql } from '../../db/db.ts'
import { anyOf } from '../../db/unplanned.ts'
import { announceSuperseded, offerColumns, unstamped } from '../../offers/offers.ts'
import type { Offer } from '../../wire/offer.ts'
import { Uuid } from '../../wire/types.ts'
import { auditActors, guardEnding, lockAccountFor } from '../ending.ts'

export const account_purge = mutation({
  doc: 'Remove an account for good, active or deleted. Its cells stay, without an owner; its username and e-mail become free; the audit log keeps its ids.',
  auth: { account: 'required', actor: 'required', credential_types: ['daemon_token'], roles: ['keeper'] },
  event: 'account_purge',
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: z.strictObject({ account_id: Uuid, confirm: z.boolean().optional() }),
  output: z.object({ ok: z.literal(true), purged: z.literal(true) }),
  errors: ['purge_not_confirmed', 'account_not_found', 'cannot_delete_keeper', 'cannot_delete_last_admin'],
  async handler({ account_id, confirm }, { credential, fail, ...work }) {
    if (confirm !== true) throw fail('purge_not_confirmed')
    await purge(work, account_id, { credential_type: credential.type })
    return { ok: true as const, purged: true as const }
  },
})

/**
 * Deletes the account row; foreign keys delete its credentials, actors and roles. Offers that it made are
 * superseded, cells that it made no longer name a creator, and audit rows keep its ids.
 */
async function purge(
  work: Pick<Work, 'db' | 'audit' | 'notify'>,
  account_id: string,
  detail: Detail,
): Promise<void> {
  const { db, audit } = work
  const { username, email } = await lockAccountFor(db, 'account_purge', account_id, detail)
  await guardEnding(db, 'account_purge', account_id, detail)
  const superseded = await supersedeMade(db, account_id)
  const actors = await db.rows<{ id: string }>(
    sql`select id from actor where account_id = ${account_id}::uuid order by id`,
  )
  const actor_ids = actors.map(({ id }) => id)
  await releaseCells(db, actor_ids)
  // Usage rows before actors: a cell write locks its usage row first and its actor afterwards.
  await db.run(sql`delete from cell_usage where account_id = ${account_id}::uuid`)
  await db.run(sql`delete from account where id = ${account_id}::uuid`)
  await db.run(sql`delete from idempotency_key where account_id = ${account_id}::uuid`)
  audit('account_purge', { username, email, ...detail }, { target_account_id: account_id })
  auditActors(audit, 'actor_purge', account_id, actor_ids, detail)
  const cause = { reason: 'grantor_lost_authority' as const, cause_id: account_id }
  announceSuperseded(
    work,
    superseded.map((offer) => ({ offer, ...cause })),
    onlyVia(detail),
  )
}

/**
 * Supersedes the pending offers that the account made. Offers made to it are deleted with its row, in no
 * particular order, so they are locked here too: offers are always locked by ascending id.
 */
const supersedeMade = (db: Queryable, account_id: string): Promise<Offer[]> =>
  db.rows<Offer>(sql`
    with held as (
      select o.offer_id, o.from_account_id, o.to_account_id, o.expires_at from role_grant_offer o
      where (o.from_account_id = ${account_id}::uuid or o.to_account_id = ${account_id}::uuid) and ${unstamped}
      order by o.offer_id for update
    )
    update role_grant_offer o set superseded_at = now()
    from held where o.offer_id = held.offer_id and held.expires_at > statement_timestamp()
      and held.from_account_id = ${account_id}::uuid and held.to_account_id <> ${account_id}::uuid
    returning ${offerColumns}`)

/** Max cells per statement: a million at once would take longer than a statement may. */
const releasedAtOnce = 2_000

/**
 * Clears the actors from `created_by` and `updated_by` of cells. The foreign keys would do it too, but they
 * rewrite each cell once per column and lock cells in no particular order; cells are always locked by ascending id.
 */
async function releaseCells(db: Queryable, actor_ids: string[]): Promise<void> {
  const isOneOf = (column: Sql): Sql => sql`${column} = any(${actor_ids}::uuid[])`
  const forgotten = (column: Sql): Sql =>
    sql`${column} = case when ${isOneOf(column)} then null else ${column} end`
  await db.run(sql`
    declare released no scroll cursor for
    select id from cell where ${isOneOf(sql`created_by`)} or ${isOneOf(sql`updated_by`)}
    order by id for no key update`)
  for (;;) {
    const held = await db.rows<{ id: string }>(sql`fetch ${sql.raw(releasedAtOnce)} from released`)
    if (held.length === 0) break
    await db.run(sql`
      update cell set ${forgotten(sql`created_by`)}, ${forgotten(sql`updated_by`)}
      where id = ${anyOf(held.map(({ id }) => id))}`)
  }
  await db.run(sql`close released`)
}

export const purgeAccount = operation({
  doc: 'Remove an account for good, with its credentials, actors and roles. Its cells stay, without an owner; the audit log keeps its ids, username and e-mail.',
  input: z.strictObject({ account_id: Uuid, confirm: z.boolean().optional() }),
  event: 'account_purge',
  errors: ['purge_not_confirmed', 'account_not_found', 'cannot_delete_keeper', 'cannot_delete_last_admin'],
  refine({ account_id, confirm }, { fail }) {
    if (confirm !== true) throw fail('purge_not_confirmed')
    return account_id
  },
  handler: (account_id, { detail, ...work }): Promise<void> => purge(work, account_id, detail),
  command: {
    name: 'account purge',
    args: { account_id: account, confirm: '--confirm' },
    details: 'Without --confirm nothing is removed.',
    done: { purged: true },
    phrase: (_, { who }) => `${who} is removed for good.`,
  },
})
