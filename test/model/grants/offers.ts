import {
  inTurn,
  type Left,
  ofOffer,
  type Plan,
  refused,
  row,
  type Seen,
  supersede,
  tell,
  wireOffer,
} from './expected.ts'
import { confer } from './grants.ts'
import type { Moved } from './moves.ts'
import {
  type Actor,
  acceptable,
  grantsMax,
  heldBy,
  holds,
  inDays,
  isActive,
  isDestroyed,
  isGrantable,
  isLapsed,
  isLive,
  isPending,
  isRegistered,
  misplaced,
  type Offer,
  offersMax,
  outlasts,
  scopes,
  times,
  type World,
} from './roles.ts'
import { chosenActor, pick } from './world.ts'

/** The nth offer, or the nth of those that are pending or have lapsed unmarked, if there are any. */
export function someOffer(
  { offers }: World,
  { nth, isOpen }: { nth: number; isOpen: boolean },
): Offer | undefined {
  const open = offers.filter(({ end }) => end === null)
  return pick(isOpen && open.length > 0 ? open : offers, nth)
}

type Wire = { offer_id: string; created_at: string; expires_at: string }

/** The same grantor offering the same to the same recipient again refreshes the pending offer. */
export function offer(
  world: World,
  by: Actor,
  move: Moved<'offer'>,
): Omit<Plan, 'call'> & { params: object } {
  const { message, days } = move
  const drawn = { to: pick(world.accounts, move.to), role: move.role, scope: scopes[move.scope] }
  const like = move.like === null ? undefined : someOffer(world, { nth: move.like, isOpen: true })
  const { to, role, scope } = like ?? drawn
  const until = times[move.until]
  const named = chosenActor(world, to, move.named)
  const same = world.offers.find(
    (one) =>
      one.end === null &&
      one.from === by &&
      one.to === to &&
      one.named === named &&
      one.role === role &&
      one.scope === scope,
  )
  const refusal = (reason: string) =>
    refused(
      reason,
      row(
        'role_grant_offer_create',
        by,
        {},
        {
          reason,
          ...(isRegistered(role) && { role }),
          attempted_to_account_id: to.id,
          ...(named && { attempted_to_actor_id: named.id }),
          ...(scope.scope_id && { attempted_scope_id: scope.scope_id }),
        },
        'failure',
      ),
    )
  const made = world.offers.filter((one) => one.from === by && isPending(one))
  const outcome = () => {
    if (!isGrantable(role)) return refusal('role_grant_offer_role_not_grantable')
    const misplacement = misplaced(role, scope)
    if (misplacement) return refused(misplacement)
    if (!holds(world, by, role, scope)) return refusal('role_grant_offer_not_authorized')
    if (to === by.account) return refusal('role_grant_offer_self_target')
    if (to.isDeleted) return refused('account_not_found')
    if (named && (named.account !== to || !isLive(named)))
      return refusal('role_grant_offer_actor_account_mismatch')
    if (isDestroyed(world, scope)) return refused('role_grant_scope_destroyed')
    if (made.length >= offersMax && !(same && isPending(same))) return refused('role_grant_offer_limit')
    return { outcome: 'ok', effect }
  }
  const effect = ({ answer }: Seen<{ offer: Wire }>): Left => {
    const { offer_id: id, created_at, expires_at } = answer.offer
    const wanted = { message, expires_at, until }
    const lapsed = same && isLapsed(same)
    if (same && lapsed) same.end = 'expired'
    const updated = same !== undefined && !lapsed
    const one: Offer = updated
      ? Object.assign(same, wanted)
      : {
          ...{ id, from: by, to, named, role, scope, created_at, ...wanted },
          ...{ end: null, decline_reason: null, grant: null },
        }
    if (!updated) {
      // A new offer ends after some days, or with the role that it offers.
      const end = inDays(created_at, days ?? 30)
      one.expires_at = outlasts(end, until) ? (until as string) : end
      world.offers.push(one)
    }
    const on = { account: to, actor: named }
    return {
      answer: { offer: wireOffer(one) },
      rows: [
        ...(lapsed ? [row('role_grant_offer_expire', by, on, ofOffer(same))] : []),
        row('role_grant_offer_create', by, on, { ...ofOffer(one), to_account_id: to.id, updated }),
      ],
      told: [tell(to, 'role_grant_offer_received', { offer: wireOffer(one) })],
    }
  }
  const params = {
    ...{ to_account_id: to.id, role, ...scope, message },
    ...{ to_actor_id: named?.id ?? null, expires_in_days: days, grant_expires_at: until },
  }
  return { params, ...outcome() }
}

/** Why an offer can not be answered any more; undefined if it is pending. */
function ended({ end, ...offer }: Offer): string | undefined {
  if (end === 'expired' || isLapsed({ end, ...offer })) return 'role_grant_offer_expired'
  return end === null ? undefined : 'role_grant_offer_terminal'
}

export function accept(world: World, by: Actor, one: Offer): Omit<Plan, 'call'> {
  if (one.to !== by.account) return refused('role_grant_offer_not_found')
  // Accepting again gives the same answer, as long as the actor has the role that it got by it.
  if (one.end === 'accepted' && one.grant?.actor === by && isActive(one.grant)) {
    const again = { role_grant_id: one.grant.id, created: false, superseded_offer_ids: [] }
    return {
      outcome: 'ok',
      effect: () => ({ answer: { ...again, offer: wireOffer(one) }, rows: [], told: [] }),
    }
  }
  const reason = ended(one)
  if (reason) return refused(reason)
  if (one.named !== null && one.named !== by) return refused('role_grant_offer_actor_mismatch')
  if (!isGrantable(one.role) || !isLive(one.from) || !holds(world, one.from, one.role, one.scope)) {
    const cause = { by, reason: 'grantor_lost_authority', cause_id: null }
    return { outcome: 'role_grant_offer_terminal', effect: () => supersede([one], cause) }
  }
  const held = heldBy(world, by)
  const isHeld = held.some(({ role, scope }) => role === one.role && scope === one.scope)
  if (held.length >= grantsMax && !isHeld) return refused('role_grant_offer_limit')
  return {
    outcome: 'ok',
    effect({ answer }: Seen<{ role_grant_id: string }>) {
      const { role, scope, until, from } = one
      const tuple = { actor: by, role, scope, until, by: from, offer: one }
      const source = { source: 'offer', source_offer_id: one.id }
      const { grant, created, rows } = confer(world, by, answer.role_grant_id, tuple, source)
      one.end = 'accepted'
      one.grant = grant
      const siblings = acceptable(world, by, one)
      const accepted = row(
        'role_grant_offer_accept',
        by,
        { actor: by },
        { ...ofOffer(one), role_grant_id: grant.id },
      )
      const left = inTurn(
        {
          rows: [accepted, ...rows],
          told: [tell(from.account, 'role_grant_offer_accepted', { offer: wireOffer(one) })],
        },
        supersede(siblings, { by, reason: 'sibling_accepted', cause_id: one.id }),
      )
      const superseded_offer_ids = siblings.map(({ id }) => id).sort()
      const offer = wireOffer(one)
      return { ...left, answer: { role_grant_id: grant.id, created, superseded_offer_ids, offer } }
    },
  }
}

/** Every actor of the account may decline, also an offer that names another. */
export function decline(by: Actor, one: Offer, decline_reason: string | null): Omit<Plan, 'call'> {
  if (one.to !== by.account) return refused('role_grant_offer_not_found')
  const reason = ended(one)
  if (reason) return refused(reason)
  return {
    outcome: 'ok',
    effect() {
      Object.assign(one, { end: 'declined', decline_reason })
      return {
        answer: { ok: true },
        rows: [row('role_grant_offer_decline', by, { actor: one.from }, ofOffer(one))],
        told: [tell(one.from.account, 'role_grant_offer_declined', { offer: wireOffer(one) })],
      }
    },
  }
}

/** Only the actor that made an offer may retract it. */
export function retract(by: Actor, one: Offer): Omit<Plan, 'call'> {
  if (one.from !== by) return refused('role_grant_offer_not_found')
  const reason = ended(one)
  if (reason) return refused(reason)
  return {
    outcome: 'ok',
    effect() {
      one.end = 'retracted'
      return {
        answer: { ok: true },
        rows: [row('role_grant_offer_retract', by, { account: one.to, actor: one.named }, ofOffer(one))],
        told: [tell(one.to, 'role_grant_offer_retracted', { offer: wireOffer(one) })],
      }
    },
  }
}
