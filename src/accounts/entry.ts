import { z } from 'zod'
import { PendingOffer } from '../offers/offers.ts'
import { RoleGrantSummary } from '../roles/grants.ts'
import { Uuid } from '../wire/types.ts'
import { AdminAccount } from './accounts.ts'

/** An account as admins see it, with its actors, their grants and its pending offers. */
export const AccountEntry = z.object({
  account: AdminAccount,
  actors: z.array(z.object({ id: Uuid, name: z.string(), role_grants: z.array(RoleGrantSummary) })),
  actor: z.object({ id: Uuid, name: z.string() }).nullable(),
  role_grants: z.array(RoleGrantSummary),
  pending_offers: z.array(PendingOffer),
})
export type AccountEntry = z.output<typeof AccountEntry>
