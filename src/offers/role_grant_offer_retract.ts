import { z } from 'zod'
import { holdCredential, lockAccounts } from '../accounts/locks.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { Uuid } from '../wire/types.ts'
import { lockOffer, offerMetadata, readOffer, refuseEnded, stampOffer } from './offers.ts'

export const role_grant_offer_retract = mutation({
  doc: 'Take back an offer that the acting actor made. Nobody else can, not even an admin.',
  auth: { account: 'required', actor: 'required' },
  event: 'role_grant_offer_retract',
  input: z.strictObject({ offer_id: Uuid }),
  output: z.object({ ok: z.literal(true) }),
  errors: ['role_grant_offer_not_found', 'role_grant_offer_terminal', 'role_grant_offer_expired'],
  async handler({ offer_id }, { account, actor, credential, db, audit, notify, fail }) {
    const asked = await readOffer(db, offer_id)
    if (asked?.from_actor_id !== actor.id) throw fail('role_grant_offer_not_found')
    const [, stored, isHeld] = await Promise.all([
      lockAccounts(db, [account.id, asked.to_account_id]),
      lockOffer(db, offer_id),
      holdCredential(db, { account, credential }),
    ])
    if (!isHeld) throw refusal('authentication_required')
    if (!stored) throw fail('role_grant_offer_not_found')
    refuseEnded(stored)
    const offer = await stampOffer(db, offer_id, sql`retracted_at = now()`)
    audit('role_grant_offer_retract', offerMetadata(offer), {
      target_account_id: offer.to_account_id,
      target_actor_id: offer.to_actor_id,
    })
    notify(offer.to_account_id, 'role_grant_offer_retracted', { offer })
    return { ok: true as const }
  },
})
