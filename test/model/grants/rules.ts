import { deleteAccount, destroyScope, removeActor, sweep, undeleteAccount } from './endings.ts'
import { type Event, operator, type Plan, refused } from './expected.ts'
import { assign, revoke, setOwnRole } from './grants.ts'
import type { Move, Moved, What } from './moves.ts'
import { accept, decline, offer, retract, someOffer } from './offers.ts'
import { type Actor, type Grant, isActive, isPending, type Offer, scopes, type World } from './roles.ts'
import { destroy, expire, lapse, numberOf, pick, plant, restore } from './world.ts'

type Rules = { [K in What]: (world: World, by: Actor, move: Moved<K>) => Plan | Event | undefined }

/** What a move calls, and what the rules make of it; undefined if the world has nothing to move. */
export const planOf = (world: World, by: Actor, move: Move): Plan | Event | undefined =>
  (rules[move.what] as (world: World, by: Actor, move: Move) => Plan | Event | undefined)(world, by, move)

/** A call of a method by an actor. One that is gone can not call. */
function called(world: World, by: Actor, method: string, params: object, ruled: Omit<Plan, 'call'>): Plan {
  const gone = by.account.isDeleted
    ? 'authentication_required'
    : by.isRemoved
      ? 'actor_not_on_account'
      : undefined
  return {
    call: (stage) => stage.call(numberOf(world, by), method, params),
    ...(gone === undefined ? ruled : refused(gone)),
  }
}

const rules: Rules = {
  offer(world, by, move) {
    const { params, ...ruled } = offer(world, by, move)
    return called(world, by, 'role_grant_offer_create', params, ruled)
  },
  accept(world, by, move) {
    const one = someOffer(world, move)
    return one && called(world, by, 'role_grant_offer_accept', { offer_id: one.id }, accept(world, by, one))
  },
  decline(world, by, { reason, ...move }) {
    const one = someOffer(world, move)
    const params = { offer_id: one?.id, reason }
    return one && called(world, by, 'role_grant_offer_decline', params, decline(by, one, reason))
  },
  retract(world, by, move) {
    const one = someOffer(world, move)
    return one && called(world, by, 'role_grant_offer_retract', { offer_id: one.id }, retract(by, one))
  },
  assign(world, by, move) {
    const { params, ...ruled } = assign(world, by, move)
    return called(world, by, 'role_grant_assign', params, ruled)
  },
  revoke(world, by, { nth, isOpen, reason, ofAnother }) {
    const active = world.grants.filter(isActive)
    const grant = pick(isOpen && active.length > 0 ? active : world.grants, nth) as Grant | undefined
    if (!grant) return undefined
    const named = ofAnother ? pick(world.actors, numberOf(world, grant.actor) + 1) : grant.actor
    const params = { actor_id: named.id, role_grant_id: grant.id, reason }
    return called(world, by, 'role_grant_revoke', params, revoke(world, by, grant, named, reason))
  },
  selfService(world, by, move) {
    const { role, enabled } = move
    return called(world, by, 'self_service_role_set', { role, enabled }, setOwnRole(world, by, move))
  },

  destroyScope(world, _by, { scope }) {
    return { call: (stage) => destroy(stage, scopes[scope]), ...destroyScope(world, scopes[scope]) }
  },
  deleteAccount(world, _by, { account: nth }) {
    const account = pick(world.accounts, nth)
    return {
      call: ({ test }) => test.service.operations.deleteAccount({ account_id: account.id }, operator),
      ...deleteAccount(world, account),
    }
  },
  undeleteAccount(world, _by, { account: nth }) {
    const account = pick(world.accounts, nth)
    return { call: (stage) => restore(stage, account), ...undeleteAccount(world, account) }
  },
  removeActor(world, _by, { actor: nth }) {
    const actor = pick(world.actors, nth)
    return {
      call: ({ test }) => test.service.operations.removeActor({ actor_id: actor.id }, operator),
      ...removeActor(world, actor),
    }
  },
  sweep(world) {
    return {
      async call({ test }) {
        const { ran, expired_offers } = await test.service.operations.cleanUp()
        return { ran, expired_offers }
      },
      ...sweep(world),
    }
  },

  plant: (world, _by, move) => ({ happen: (stage) => plant(stage, world, move) }),
  expire(world, _by, { nth }) {
    const grant = pick(world.grants.filter(isActive), nth) as Grant | undefined
    return grant && { happen: (stage) => expire(stage, grant) }
  },
  lapse(world, _by, { nth }) {
    const one = pick(world.offers.filter(isPending), nth) as Offer | undefined
    return one && { happen: (stage) => lapse(stage, one) }
  },
}
