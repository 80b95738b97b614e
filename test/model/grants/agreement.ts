import assert from 'node:assert/strict'
import { send } from '../../helpers/account-routes.ts'
import { reasonOf } from '../../helpers/outcome.ts'
import type { Stage } from '../stage.ts'
import { byId, unstamped, wireOffer } from './expected.ts'
import { fallingWith } from './grants.ts'
import {
  type Account,
  type Actor,
  type Grant,
  heldBy,
  isActive,
  isAdmin,
  isLive,
  isPending,
  type Offer,
  scopes,
  type World,
} from './roles.ts'
import { numberOf } from './world.ts'

/** Checks all reading methods, as one actor sees them, against the model and thereby against each other. */

export type View = { stage: Stage; world: World; who: Actor }

/** Checks the lists of these accounts and roles. */
export async function listsAgree(
  view: View,
  accounts: readonly Account[],
  roles: readonly string[],
): Promise<void> {
  await statusAgrees(view)
  if (!isLive(view.who)) return
  await Promise.all([
    ...accounts.map((account) => offersAgree(view, account)),
    ...roles.map((role) => holdersAgree(view, role)),
  ])
}

/** The offers to an account, and its history; of others only for admins. */
async function offersAgree(view: View, account: Account): Promise<void> {
  const { world, who } = view
  const { offers } = world
  const list = offers.filter((one) => one.to === account && isPending(one) && isLive(one.from))
  const history = offers.filter(({ to, from }) => to === account || from.account === account)
  const key = (time: 'expires_at' | 'created_at') => (one: Offer) => `${one[time]} ${one.id}`
  const mayRead = who.account === account || isAdmin(world, who)
  for (const [method, expected] of [
    ['role_grant_offer_list', inOrder(list, key('expires_at'))],
    ['role_grant_offer_history', inOrder(history, key('created_at')).reverse()],
  ] as const) {
    const pages = all(view, method, 'offers', { account_id: account.id })
    if (!mayRead) assert.equal(await reasonOf(pages), 'insufficient_permissions', method)
    else assert.deepEqual(unstamped(await pages), expected.map(wireOffer), method)
  }
}

const inOrder = <T>(rows: readonly T[], key: (row: T) => string): T[] =>
  [...rows].sort((one, other) => (key(one) < key(other) ? -1 : 1))

/** All pages of a list, of two rows each. */
async function all(
  { stage, world, who }: View,
  method: string,
  what: string,
  input: object,
): Promise<object[]> {
  const rows: object[] = []
  let cursor: unknown = null
  do {
    const params = { ...input, limit: 2, cursor }
    const page: Record<string, unknown> = await stage.call(numberOf(world, who), method, params)
    rows.push(...(page[what] as object[]))
    cursor = page.next_cursor
  } while (cursor !== null)
  return rows
}

const summary = ({ id, actor, role, scope, until, by }: Grant) => ({
  ...{ id, actor_id: actor.id, role, ...scope, expires_at: until, granted_by: by?.id ?? null },
})
type Summary = ReturnType<typeof summary> & { created_at: string }
const withoutAge = ({ created_at: _, ...grant }: Summary): object => grant
/** Everywhere first, then by scope. */
const place = (scope_kind: string | null): number =>
  Object.values(scopes).findIndex((one) => one.scope_kind === scope_kind)

/** Who holds a role: its active grants to live actors, everywhere first, and then scope by scope. */
async function holdersAgree(view: View, role: string): Promise<void> {
  const { world, who } = view
  const pages = all(view, 'role_holder_list', 'holders', { role })
  if (!isAdmin(world, who)) {
    assert.equal(await reasonOf(pages), 'insufficient_permissions', 'role_holder_list')
    return
  }
  const grants = ((await pages) as { role_grant: Summary }[]).map(({ role_grant }) => role_grant)
  const held = world.grants.filter((one) => one.role === role && isActive(one) && isLive(one.actor))
  assert.deepEqual(
    [...grants].sort(byId).map(withoutAge),
    held.sort(byId).map(summary),
    `the holders of ${role}`,
  )
  const keys = grants.map((one) => `${place(one.scope_kind)} ${one.created_at} ${one.id}`)
  assert.deepEqual(keys, [...keys].sort(), `the order of the holders of ${role}`)
}

/** `GET /status`: the active grants of the acting actor, oldest first. */
async function statusAgrees({ stage, world, who }: View): Promise<void> {
  const { cookie } = stage.actors[numberOf(world, who)] as Stage['actors'][number]
  const { status, json } = await send(stage.test, `GET /status?acting=${who.id}`, { cookie })
  assert.equal(status, who.account.isDeleted ? 401 : 200, '/status')
  if (who.account.isDeleted) return
  const { actor, role_grants } = json as { actor: { id: string } | null; role_grants: Summary[] }
  assert.equal(actor?.id ?? null, isLive(who) ? who.id : null, 'the actor of /status')
  const held = isLive(who) ? heldBy(world, who).sort(byId) : []
  assert.deepEqual([...role_grants].sort(byId).map(withoutAge), held.map(summary), 'the roles of /status')
  const keys = role_grants.map(({ created_at, id }) => `${created_at} ${id}`)
  assert.deepEqual(keys, [...keys].sort(), 'the order of /status')
}

/** Where a grant comes from, for the account that has it and for admins. */
export async function explainedAlike({ stage, world, who }: View, grant: Grant): Promise<void> {
  if (!isLive(who)) return
  const { id: role_grant_id, actor, by, offer, revoked_by, revoked_reason } = grant
  const call = stage.call<{
    role_grant: Summary
    granted_by: { id: string } | null
    revoked_at: string | null
  }>(numberOf(world, who), 'role_grant_explain', { role_grant_id })
  if (who.account !== actor.account && !isAdmin(world, who)) {
    assert.equal(await reasonOf(call), 'role_grant_not_found', 'role_grant_explain')
    return
  }
  const { role_grant, granted_by, revoked_at, ...explained } = await call
  const state = grant.end === 'revoked' ? 'revoked' : isActive(grant) ? 'active' : 'expired'
  const direct = by === null ? 'system' : by.account === actor.account ? 'self' : 'actor'
  assert.deepEqual(
    unstamped({ ...explained, role_grant: withoutAge(role_grant) }),
    {
      role_grant: summary(grant),
      account_id: actor.account.id,
      state,
      via: offer ? 'offer' : direct,
      offer: offer && wireOffer(offer),
      revoked_by: revoked_by?.id ?? null,
      revoked_reason,
      dependent_offers: isActive(grant) ? fallingWith(world, grant).length : 0,
    },
    'role_grant_explain',
  )
  assert.equal(granted_by?.id ?? null, by && isLive(by) ? by.id : null, 'who granted it')
  assert.equal(revoked_at !== null, state === 'revoked', 'whether it was revoked')
}
