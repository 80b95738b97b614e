import { query } from '../core/declare.ts'
import { closePage, keyset } from '../core/page.ts'
import { sql } from '../db/db.ts'
import { requireOwnOrAdmin } from '../roles/admin.ts'
import type { Offer } from '../wire/offer.ts'
import { offerColumns, pendingTo } from './offers.ts'
import { OfferPage, OfferPageInput, openOfferPage } from './pages.ts'

export const role_grant_offer_list = query({
  doc: 'The pending offers to the caller’s account, or to any other as admin; soonest expiry first.',
  auth: { account: 'required', actor: 'required' },
  input: OfferPageInput,
  output: OfferPage,
  errors: ['insufficient_permissions'],
  refine: (input, caller) => openOfferPage('role_grant_offer_list', input, caller),
  async handler({ account_id, page }, { app, db, ...caller }) {
    requireOwnOrAdmin(account_id, caller)
    const soonest = keyset(page, { 'o.expires_at': 'timestamptz', 'o.offer_id': 'uuid' })
    const found = await db.rows<Offer>(sql`
      select ${offerColumns} from role_grant_offer o
      where ${pendingTo(sql`${account_id}::uuid`)} and ${soonest.beyond}
        and exists (
          select from actor join account on account.id = actor.account_id
          where actor.id = o.from_actor_id and actor.deleted_at is null and account.deleted_at is null
        )
      ${soonest.inOrder} ${soonest.limited}`)
    const { rows, next_cursor } = closePage(app, page, found, ({ expires_at, offer_id }) => [
      expires_at,
      offer_id,
    ])
    return { offers: rows, next_cursor }
  },
})
