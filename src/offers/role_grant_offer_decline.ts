import { z } from 'zod'
import { lockWithCredential } from '../accounts/locks.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { OrNull, Text, Uuid } from '../wire/types.ts'
import { lockOffer, offerMetadata, readOffer, refuseEnded, stampOffer } from './offers.ts'

export const role_grant_offer_decline = mutation({
  doc: 'Decline an offer to the caller’s account, whichever of its actors it names. The grantor sees the reason.',
  auth: { account: 'required', actor: 'required' },
  event: 'role_grant_offer_decline',
  input: z.strictObject({ offer_id: Uuid, reason: OrNull(Text(500)) }),
  output: z.object({ ok: z.literal(true) }),
  errors: [
    'role_grant_offer_not_found',
    'account_vanished',
    'role_grant_offer_terminal',
    'role_grant_offer_expired',
  ],
  async handler({ offer_id, reason = null }, { account, credential, db, audit, notify, fail }) {
    if ((await readOffer(db, offer_id))?.to_account_id !== account.id)
      throw fail('role_grant_offer_not_found')
    const [, stored] = await Promise.all([
      lockWithCredential(db, { account, credential }),
      lockOffer(db, offer_id),
    ])
    if (!stored) throw fail('role_grant_offer_not_found')
    refuseEnded(stored)
    const offer = await stampOffer(db, offer_id, sql`declined_at = now(), decline_reason = ${reason}`)
    audit('role_grant_offer_decline', offerMetadata(offer), {
      target_actor_id: offer.from_actor_id,
      target_account_id: offer.from_account_id,
    })
    notify(offer.from_account_id, 'role_grant_offer_declined', { offer })
    return { ok: true as const }
  },
})
