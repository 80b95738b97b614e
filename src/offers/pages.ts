import { z } from 'zod'
import type { App } from '../core/app.ts'
import { openPage, type Page, pageInput } from '../core/page.ts'
import { Offer } from '../wire/offer.ts'
import { Uuid } from '../wire/types.ts'

/** Input and output of `role_grant_offer_list` and `role_grant_offer_history`. */
export const OfferPageInput = z.strictObject({ account_id: Uuid.nullish(), ...pageInput(500, 100) })
export const OfferPage = z.object({ offers: z.array(Offer), next_cursor: z.string().nullable() })

type Caller = { app: App; account: { id: string }; actor: { id: string } }

export function openOfferPage(
  method: string,
  input: z.output<typeof OfferPageInput>,
  { app, account, actor }: Caller,
): { account_id: string; page: Page } {
  const account_id = input.account_id ?? account.id
  return { account_id, page: openPage(app, method, { actor: actor.id, account_id }, input) }
}
