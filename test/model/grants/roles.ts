/**
 * What role grants and offers mean, written over a world in memory: who holds a role where, who may offer it, and which
 * offers compete. `offers.ts`, `grants.ts` and `endings.ts` have what each call does with them.
 */

export type Account = { id: string; isDeleted: boolean }
export type Actor = { id: string; account: Account; isRemoved: boolean }
/** Both null: everywhere. Scopes are compared as objects, so each exists once. */
export type Scope = { scope_kind: string | null; scope_id: string | null }
export type Grant = {
  id: string
  actor: Actor
  role: string
  scope: Scope
  until: string | null
  /** `closed`: it had expired, and made room for a new one. Of an actor, role and scope one at most has not ended. */
  end: null | 'revoked' | 'closed'
  by: Actor | null
  offer: Offer | null
  revoked_by: Actor | null
  revoked_reason: string | null
}
export type Offer = {
  id: string
  from: Actor
  to: Account
  /** The only actor that may accept it. */
  named: Actor | null
  role: string
  scope: Scope
  message: string | null
  created_at: string
  expires_at: string
  /** Until when the role is offered. */
  until: string | null
  end: null | 'accepted' | 'declined' | 'retracted' | 'superseded' | 'expired'
  decline_reason: string | null
  grant: Grant | null
}
export type World = {
  accounts: Account[]
  actors: Actor[]
  grants: Grant[]
  offers: Offer[]
  destroyed: Set<Scope>
}

export const everywhere: Scope = { scope_kind: null, scope_id: null }
const scope_id = '5c000000-0000-4000-8000-000000000001'
/** Two scopes with the same id: the kind is a part of the scope. */
export const scopes = {
  everywhere,
  classroom: { scope_kind: 'classroom', scope_id },
  team: { scope_kind: 'team', scope_id },
} satisfies Record<string, Scope>

/** The roles that the stage registers. `admin` is there always; grants of `gone` remain from an earlier start. */
export const registered = [
  { name: 'teacher', grant_paths: ['admin'] },
  { name: 'guide', grant_paths: ['admin', 'self_service'], applicable_scope_kinds: ['classroom'] },
  { name: 'inner', grant_paths: ['system'] },
]
export const selfService = ['guide']
export const roleNames = ['teacher', 'guide', 'inner', 'admin', 'gone'] as const
/** Max active grants of an actor that accepts an offer, and max pending offers of one that makes an offer. */
export const grantsMax = 2
export const offersMax = 3

export const isRegistered = (role: string): boolean => role !== 'gone'
/** Whether offers, admins and revocations by admins can concern the role. */
export const isGrantable = (role: string): boolean => role !== 'inner' && role !== 'gone'

/** Why the role can not be held at the scope; undefined if it can. */
export function misplaced(role: string, scope: Scope): string | undefined {
  if (scope === everywhere) return undefined
  if (role === 'admin') return 'role_grant_builtin_scoped'
  const kinds = registered.find(({ name }) => name === role)?.applicable_scope_kinds
  return kinds && !kinds.includes(scope.scope_kind as string) ? 'role_grant_scope_not_applicable' : undefined
}

const day = 86_400_000
export const past = '2026-01-02T00:00:00.000Z'
export const times = {
  never: null,
  tomorrow: new Date(Date.now() + day).toISOString(),
  far: '2999-01-01T00:00:00.000Z',
}
const isPast = (time: string | null): boolean => time === past
export const inDays = (from: string, days: number): string =>
  new Date(Date.parse(from) + days * day).toISOString()

/** Whether a grant until `one` outlasts a grant until `other`. */
export const outlasts = (one: string | null, other: string | null): boolean =>
  other !== null && (one === null || one > other)

export const isLive = ({ isRemoved, account }: Actor): boolean => !isRemoved && !account.isDeleted
export const isActive = ({ end, until }: Grant): boolean => end === null && !isPast(until)
/** A lapsed offer is no longer pending, whether or not it is marked as expired yet. */
export const isPending = ({ end, expires_at }: Offer): boolean => end === null && !isPast(expires_at)
export const isLapsed = ({ end, expires_at }: Offer): boolean => end === null && isPast(expires_at)

export const heldBy = ({ grants }: World, actor: Actor): Grant[] =>
  grants.filter((grant) => grant.actor === actor && isActive(grant))

/** A grant counts everywhere if it has no scope, and else at its own scope only. */
export const holds = (world: World, actor: Actor, role: string, scope: Scope): boolean =>
  heldBy(world, actor).some(
    (grant) => grant.role === role && (grant.scope === everywhere || grant.scope === scope),
  )

export const isAdmin = (world: World, actor: Actor): boolean => holds(world, actor, 'admin', everywhere)

/** Whether these are all the live admins there are. */
export function areLastAdmins(world: World, leaving: readonly Actor[]): boolean {
  const admins = world.actors.filter((actor) => isLive(actor) && isAdmin(world, actor))
  return admins.length > 0 && admins.every((actor) => leaving.includes(actor))
}

/** The pending offers of the same role at the same scope that this actor could accept. */
export const acceptable = (
  { offers }: World,
  actor: Actor,
  { role, scope }: Pick<Offer, 'role' | 'scope'>,
): Offer[] =>
  offers.filter(
    (offer) =>
      isPending(offer) &&
      offer.to === actor.account &&
      offer.role === role &&
      offer.scope === scope &&
      (offer.named === null || offer.named === actor),
  )

/** The pending offers of the role that the actor has made without holding it there any more. */
export const baseless = (world: World, actor: Actor, role: string): Offer[] =>
  world.offers.filter(
    (offer) =>
      isPending(offer) &&
      offer.from === actor &&
      offer.role === role &&
      !holds(world, actor, role, offer.scope),
  )

/** No grant or offer can be made at a scope that was destroyed. */
export const isDestroyed = ({ destroyed }: World, scope: Scope): boolean => destroyed.has(scope)
