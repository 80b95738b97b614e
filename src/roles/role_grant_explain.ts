import { z } from 'zod'
import { ActorLabel, type LabelRow, labelColumns, liveActors, toLabel } from '../actors/actors.ts'
import { activeGrant, grantSummary } from '../auth/active-grant.ts'
import { query } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { offerColumns } from '../offers/offers.ts'
import { Offer } from '../wire/offer.ts'
import { Uuid } from '../wire/types.ts'
import { holdsAdmin } from './admin.ts'
import { RoleGrantSummary } from './grants.ts'
import { fallingCount } from './revoke.ts'

const Explained = z.object({
  role_grant: RoleGrantSummary,
  account_id: Uuid,
  state: z.enum(['active', 'expired', 'revoked']),
  /**
   * `offer`: by consent to an offer; `self`: by an actor of the same account; `actor`: by another actor, at once;
   * `system`: by the service or its operator.
   */
  via: z.enum(['offer', 'self', 'actor', 'system']),
  /** Null: nobody, or an actor that was removed. */
  granted_by: ActorLabel.nullable(),
  offer: Offer.nullable(),
  revoked_at: z.string().nullable(),
  revoked_by: Uuid.nullable(),
  revoked_reason: z.string().nullable(),
  dependent_offers: z.int(),
})

export const role_grant_explain = query({
  doc: 'Where a role comes from, how long it lasts or why it ended. `dependent_offers` counts the pending offers that end with it, up to 1000. For the caller’s own account, or as admin.',
  auth: { account: 'required', actor: 'required' },
  rate_limit: 'account',
  rate_limit_group: 'lookup',
  input: z.strictObject({ role_grant_id: Uuid }),
  output: Explained,
  errors: ['role_grant_not_found'],
  async handler({ role_grant_id }, { app, account, role_grants, db, fail }) {
    const found = await db.first<Found>(sql`
      with ended as (
        select g.id, g.actor_id, actor.account_id, g.role, g.scope_kind, g.scope_id
        from role_grant g join actor on actor.id = g.actor_id
        where g.id = ${role_grant_id}::uuid and ${activeGrant}
      )
      select ${grantSummary} as role_grant, actor.account_id, g.source_offer_id, g.revoked_at, g.revoked_by,
        g.revoked_reason, ${fallingCount(app)} as dependent_offers,
        case when g.revoked_at is not null then 'revoked' when ${activeGrant} then 'active' else 'expired' end as state,
        case when g.source_offer_id is not null then 'offer' when g.granted_by is null then 'system'
          when exists (select from actor own where own.id = g.granted_by and own.account_id = actor.account_id)
          then 'self' else 'actor' end as via
      from role_grant g join actor on actor.id = g.actor_id where g.id = ${role_grant_id}::uuid`)
    if (!found || (found.account_id !== account.id && !holdsAdmin(role_grants)))
      throw fail('role_grant_not_found')
    const { source_offer_id, ...explained } = found
    const { granted_by } = found.role_grant
    const [label, offer] = await Promise.all([
      granted_by === null
        ? undefined
        : db.first<LabelRow>(
            sql`select ${labelColumns} from ${liveActors} where actor.id = ${granted_by}::uuid`,
          ),
      source_offer_id === null
        ? undefined
        : db.first<Offer>(sql`
            select ${offerColumns} from role_grant_offer o where o.offer_id = ${source_offer_id}::uuid`),
    ])
    return { ...explained, granted_by: label ? toLabel(label) : null, offer: offer ?? null }
  },
})

type Found = Omit<z.output<typeof Explained>, 'granted_by' | 'offer'> & { source_offer_id: string | null }
