import {
  inTurn,
  type Left,
  ofGrant,
  type Plan,
  type Row,
  refused,
  row,
  type Seen,
  supersede,
  tell,
} from './expected.ts'
import type { Moved } from './moves.ts'
import {
  type Actor,
  acceptable,
  areLastAdmins,
  baseless,
  everywhere,
  type Grant,
  isActive,
  isAdmin,
  isDestroyed,
  isGrantable,
  isLive,
  isRegistered,
  misplaced,
  outlasts,
  scopes,
  selfService,
  times,
  type World,
} from './roles.ts'
import { chosenActor, pick } from './world.ts'

type Conferred = Pick<Grant, 'actor' | 'role' | 'scope' | 'until' | 'by' | 'offer'>

/** An actor that has the role there keeps its grant, which can only become longer. An expired grant makes room. */
export function confer(
  world: World,
  by: Actor,
  id: string,
  wanted: Conferred,
  source: object,
): { grant: Grant; created: boolean; rows: Row[] } {
  const { actor, role, scope, until } = wanted
  const open = world.grants.find(
    (one) => one.end === null && one.actor === actor && one.role === role && one.scope === scope,
  )
  const held = open && isActive(open) ? open : undefined
  if (open && !held) open.end = 'closed'
  const extended = held !== undefined && outlasts(until, held.until)
  if (held && extended) held.until = until
  const grant: Grant = held ?? { id, ...wanted, end: null, revoked_by: null, revoked_reason: null }
  if (!held) world.grants.push(grant)
  const metadata = {
    ...{ ...ofGrant(grant), expires_at: grant.until, ...source },
    ...(extended && { extended: true }),
  }
  const rows = held && !extended ? [] : [row('role_grant_create', by, { actor }, metadata)]
  return { grant, created: !held, rows }
}

/** Ends grants in turn, without the offers that depend on them. */
export function end(
  grants: readonly Grant[],
  { by, cause, reason, ...via }: { by: Actor | null; cause: string; reason: string | null; via?: string },
): Left {
  for (const grant of grants) Object.assign(grant, { end: 'revoked', revoked_by: by, revoked_reason: reason })
  return {
    rows: grants.map((grant) =>
      row('role_grant_revoke', by, { actor: grant.actor }, { ...ofGrant(grant), cause, ...via }),
    ),
    told: grants.map(({ id, actor, role, scope: { scope_id } }) =>
      tell(actor.account, 'role_grant_revoke', {
        ...{ role_grant_id: id, role, scope_id },
        ...(reason !== null && { reason }),
      }),
    ),
  }
}

/** The offers that end with a grant: of the same to its actor, and by its actor where it alone allowed them. */
export function fallingWith(world: World, grant: Grant) {
  const without = { ...world, grants: world.grants.filter((one) => one !== grant) }
  const again = acceptable(without, grant.actor, grant).map((one) => ({ one, reason: 'role_grant_revoked' }))
  const own = baseless(without, grant.actor, grant.role).map((one) => ({
    one,
    reason: 'grantor_lost_authority',
  }))
  return [...again, ...own].sort((a, b) => (a.one.id < b.one.id ? -1 : 1))
}

function endWithOffers(
  world: World,
  grant: Grant,
  how: { by: Actor; cause: string; reason: string | null },
): Left {
  const left = end([grant], how)
  const { by } = how
  return inTurn(
    left,
    ...fallingWith(world, grant).map(({ one, reason }) =>
      supersede([one], { by, reason, cause_id: grant.id }),
    ),
  )
}

export function assign(
  world: World,
  by: Actor,
  move: Moved<'assign'>,
): Omit<Plan, 'call'> & { params: object } {
  const { role } = move
  const [to, scope, until] = [pick(world.accounts, move.to), scopes[move.scope], times[move.until]]
  const named = chosenActor(world, to, move.named)
  const available = world.actors.filter((one) => one.account === to && isLive(one))
  const actor = named ?? (available[0] as Actor)
  const outcome = () => {
    if (!isAdmin(world, by)) return refused('insufficient_permissions')
    if (!isGrantable(role)) {
      const reason = 'role_not_web_grantable'
      const metadata = {
        ...{ reason, ...(isRegistered(role) && { role }), attempted_to_account_id: to.id },
        ...(named && { attempted_to_actor_id: named.id }),
        ...(scope.scope_id && { attempted_scope_id: scope.scope_id }),
      }
      return refused(reason, row('role_grant_create', by, {}, metadata, 'failure'))
    }
    const misplacement = misplaced(role, scope)
    if (misplacement) return refused(misplacement)
    if (named && named.account !== to) return refused('role_grant_offer_actor_account_mismatch')
    if (to.isDeleted) return refused('account_not_found')
    if (named?.isRemoved) return refused('role_grant_offer_actor_account_mismatch')
    if (!named && available.length > 1) return refused('to_actor_required')
    if (isDestroyed(world, scope)) return refused('role_grant_scope_destroyed')
    return { outcome: 'ok', effect }
  }
  const effect = ({ answer }: Seen<{ role_grant_id: string }>): Left => {
    const wanted = { actor, role, scope, until, by, offer: null }
    const { grant, created, rows } = confer(world, by, answer.role_grant_id, wanted, { source: 'assign' })
    return {
      answer: { ok: true, role_grant_id: grant.id, created, expires_at: grant.until },
      rows,
      told: [],
    }
  }
  const params = { to_account_id: to.id, to_actor_id: named?.id ?? null, role, ...scope, expires_at: until }
  return { params, ...outcome() }
}

/** `named` is the actor that the call names as the holder. */
export function revoke(
  world: World,
  by: Actor,
  grant: Grant,
  named: Actor,
  reason: string | null,
): Omit<Plan, 'call'> {
  const { role, scope, actor } = grant
  const refusal = (why: string) =>
    refused(
      why,
      row('role_grant_revoke', by, { actor }, { reason: why, role, role_grant_id: grant.id }, 'failure'),
    )
  if (!isAdmin(world, by)) return refused('insufficient_permissions')
  if (!isActive(grant) || named !== actor) return refused('role_grant_not_found')
  if (!isGrantable(role)) return refusal('role_not_web_grantable')
  const isAdminGrant = role === 'admin' && scope === everywhere
  if (isAdminGrant && areLastAdmins(world, [actor])) return refusal('cannot_revoke_last_admin')
  return {
    outcome: 'ok',
    effect: () => ({
      answer: { ok: true, revoked: true },
      ...endWithOffers(world, grant, { by, cause: 'admin', reason }),
    }),
  }
}

/** The actor gives itself a role everywhere, or takes it away. Grants at scopes do not matter here. */
export function setOwnRole(
  world: World,
  by: Actor,
  { role, enabled }: Moved<'selfService'>,
): Omit<Plan, 'call'> {
  if (!selfService.includes(role)) return refused('role_not_self_service_eligible')
  const held = world.grants.find(
    (one) => one.actor === by && one.role === role && one.scope === everywhere && isActive(one),
  )
  const changed = enabled !== (held !== undefined)
  return {
    outcome: 'ok',
    effect({ rows }: Seen) {
      const answer = { ok: true, enabled, changed }
      if (!changed) return { answer, rows: [], told: [] }
      if (held) return { answer, ...endWithOffers(world, held, { by, cause: 'self_service', reason: null }) }
      // The answer has no id. If the one of the row is wrong, the lists will differ.
      const { role_grant_id: id } = (rows[0]?.metadata ?? {}) as { role_grant_id: string }
      const wanted = { actor: by, role, scope: everywhere, until: null, by, offer: null }
      return { answer, told: [], rows: confer(world, by, id, wanted, { source: 'self_service' }).rows }
    },
  }
}
