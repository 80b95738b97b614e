import {
  byId,
  inTurn,
  type Left,
  ofOffer,
  operator,
  type Plan,
  type Row,
  refused,
  row,
  supersede,
  wireOffer,
} from './expected.ts'
import { end } from './grants.ts'
import {
  type Account,
  type Actor,
  areLastAdmins,
  isActive,
  isLapsed,
  isLive,
  isPending,
  type Scope,
  type World,
} from './roles.ts'

/** What an operator ends or restores, with the rows that name no caller. */

type Ruled = Omit<Plan, 'call'>
const nothing: Pick<Left, 'rows' | 'told'> = { rows: [], told: [] }

/** All grants and pending offers at the scope end, and there will be no others. */
export function destroyScope(world: World, scope: Scope): Ruled {
  return {
    outcome: 'ok',
    effect() {
      const grants = world.grants.filter((one) => one.scope === scope && isActive(one)).sort(byId)
      const offers = world.offers.filter((one) => one.scope === scope && isPending(one)).sort(byId)
      world.destroyed.add(scope)
      const left = inTurn(
        end(grants, { by: null, cause: 'scope_destroyed', reason: null, ...operator }),
        supersede(offers, { by: null, reason: 'scope_destroyed', cause_id: scope.scope_id, ...operator }),
      )
      const revoked = grants.map(({ id, role, actor }) => ({
        ...{ role_grant_id: id, role, ...scope, actor_id: actor.id, account_id: actor.account.id },
      }))
      return { answer: { revoked, superseded_offers: offers.map(wireOffer) }, ...left }
    },
  }
}

const detail = { credential_type: null, ...operator }

/** Its grants and offers stay as they are; only nobody can use them. */
export function deleteAccount(world: World, account: Account): Ruled {
  const actors = world.actors.filter((one) => one.account === account && isLive(one)).sort(byId)
  if (account.isDeleted) return { outcome: 'ok', effect: () => ({ answer: { deleted: false }, ...nothing }) }
  const reason = 'cannot_delete_last_admin'
  if (areLastAdmins(world, actors))
    return refused(reason, row('account_delete', null, { account }, { reason, ...operator }, 'failure'))
  return {
    outcome: 'ok',
    effect() {
      account.isDeleted = true
      const counts = { sessions_revoked: 1, tokens_revoked: 0 }
      return {
        answer: { deleted: true },
        rows: [
          row('account_delete', null, { account }, { ...counts, ...detail }),
          ...ofActors('actor_delete', actors),
        ],
        told: [],
      }
    },
  }
}

export function undeleteAccount(world: World, account: Account): Ruled {
  if (!account.isDeleted)
    return { outcome: 'ok', effect: () => ({ answer: { undeleted: false }, ...nothing }) }
  return {
    outcome: 'ok',
    effect() {
      account.isDeleted = false
      const actors = world.actors.filter((one) => one.account === account && isLive(one)).sort(byId)
      return {
        answer: { undeleted: true },
        rows: [
          row('account_undelete', null, { account }, { actor_count: actors.length, ...detail }),
          ...ofActors('actor_undelete', actors),
        ],
        told: [],
      }
    },
  }
}

/** For good: its grants stay, but nobody can use them. */
export function removeActor(world: World, actor: Actor): Ruled {
  const others = world.actors.filter((one) => one.account === actor.account && one !== actor && isLive(one))
  if (!isLive(actor)) return refused('actor_not_found')
  if (others.length === 0) return refused('last_actor')
  if (areLastAdmins(world, [actor])) return refused('cannot_delete_last_admin')
  return {
    outcome: 'ok',
    effect() {
      actor.isRemoved = true
      return { rows: ofActors('actor_delete', [actor]), told: [] }
    },
  }
}

const ofActors = (event_type: string, actors: readonly Actor[]): Row[] =>
  actors.map((actor) => row(event_type, null, { actor }, operator))

/** The cleanup marks lapsed offers as expired, in the name of those who made them. Nobody is notified. */
export function sweep(world: World): Ruled {
  return {
    outcome: 'ok',
    effect() {
      const lapsed = world.offers.filter(isLapsed).sort(byId)
      for (const one of lapsed) one.end = 'expired'
      return {
        answer: { ran: true, expired_offers: lapsed.length },
        rows: lapsed.map((one) =>
          row('role_grant_offer_expire', one.from, { account: one.to, actor: one.named }, ofOffer(one)),
        ),
        told: [],
      }
    },
  }
}
