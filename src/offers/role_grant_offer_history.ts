import { query } from '../core/declare.ts'
import { closePage, keyset } from '../core/page.ts'
import { sql } from '../db/db.ts'
import { requireOwnOrAdmin } from '../roles/admin.ts'
import type { Offer } from '../wire/offer.ts'
import { offerColumns } from './offers.ts'
import { OfferPage, OfferPageInput, openOfferPage } from './pages.ts'

export const role_grant_offer_history = query({
  doc: 'Every offer to or from the caller’s account, or any other as admin, in any state; newest first.',
  auth: { account: 'required', actor: 'required' },
  input: OfferPageInput,
  output: OfferPage,
  errors: ['insufficient_permissions'],
  refine: (input, caller) => openOfferPage('role_grant_offer_history', input, caller),
  async handler({ account_id, page }, { app, db, ...caller }) {
    requireOwnOrAdmin(account_id, caller)
    const order = { 'o.created_at': 'timestamptz', 'o.offer_id': 'uuid' } as const
    const { beyond, inOrder, limited } = keyset(page, order, 'desc')
    // Each branch uses its own index and stops after one page.
    const found = await db.rows<Offer>(sql`
      select * from (
        (select ${offerColumns} from role_grant_offer o where o.to_account_id = ${account_id}::uuid and ${beyond}
          ${inOrder} ${limited})
        union all
        (select ${offerColumns} from role_grant_offer o
          where o.from_account_id = ${account_id}::uuid and o.to_account_id <> ${account_id}::uuid and ${beyond}
          ${inOrder} ${limited})
      ) o ${inOrder} ${limited}`)
    const { rows, next_cursor } = closePage(app, page, found, ({ created_at, offer_id }) => [
      created_at,
      offer_id,
    ])
    return { offers: rows, next_cursor }
  },
})
