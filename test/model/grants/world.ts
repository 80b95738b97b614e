import { sql } from '../../../src/db/db.ts'
import { clearAudit } from '../../helpers/audit-rows.ts'
import { type Stage, stageWith } from '../stage.ts'
import { operator } from './expected.ts'
import type { Planted, Seed } from './moves.ts'
import {
  type Account,
  type Actor,
  type Grant,
  grantsMax,
  type Offer,
  offersMax,
  past,
  registered,
  type Scope,
  scopes,
  selfService,
  times,
  type World,
} from './roles.ts'

/** Each world is kept twice: as the model, and as rows in the database of a service. */

export const openStage = (): Promise<Stage> =>
  stageWith({
    roles: registered,
    scope_kinds: [{ name: 'classroom' }, { name: 'team' }],
    self_service_roles: selfService,
    max_role_grants: grantsMax,
    max_pending_offers: offersMax,
    limit_role_write: 'off',
    limit_role_revoke: 'off',
    limit_admin_read: 'off',
    limit_lookup: 'off',
  })

/** Empties the stage and builds the world on it. */
export async function build(stage: Stage, { admin, teachers, local, held }: Seed): Promise<World> {
  const { db } = stage.test.service.app
  for (const table of ['role_grant', 'role_grant_offer', 'role_scope_destroyed', 'auth_session'])
    await db.run(sql`delete from ${sql.raw(table)}`)
  await db.run(sql`update account set deleted_at = null where deleted_at is not null`)
  await db.run(sql`
    update actor set deleted_at = null, deleted_with_account = false where deleted_at is not null`)
  await clearAudit(stage.test)
  const accounts = [...new Set(stage.actors.map(({ account_id }) => account_id))].map(
    (id): Account => ({ id, isDeleted: false }),
  )
  await Promise.all(accounts.map((account) => signIn(stage, account)))
  const actors = stage.actors.map(({ id, account_id }): Actor => {
    const account = accounts.find((one) => one.id === account_id) as Account
    return { id, account, isRemoved: false }
  })
  const world: World = { accounts, actors, grants: [], offers: [], destroyed: new Set() }
  const lasting = { scope: 'everywhere', until: 'never', lasts: 'on' } as const
  const first = [
    ...teachers.map((actor): Planted => ({ actor, role: 'teacher', ...lasting })),
    { actor: local, role: 'teacher', ...lasting, scope: 'classroom' } as const,
    ...(admin === null ? [] : [{ actor: admin, role: 'admin', ...lasting } as const]),
  ]
  for (const one of [...first, ...held]) await plant(stage, world, one)
  return world
}

/** A new session, by which all actors of the account call from now on. */
async function signIn({ test, actors }: Stage, { id }: Account): Promise<void> {
  const { cookie } = await test.signIn(id)
  for (const actor of actors) if (actor.account_id === id) actor.cookie = cookie
}

/** Inserts a grant that is there without a call, such as one from before its role left the registry. */
export async function plant({ test }: Stage, world: World, planted: Planted): Promise<void> {
  const { role, lasts } = planted
  const [actor, scope] = [pick(world.actors, planted.actor), scopes[planted.scope]]
  const until = lasts === 'on' ? times[planted.until] : past
  const isOpen = (one: Grant) =>
    one.end === null && one.actor === actor && one.role === role && one.scope === scope
  if (lasts !== 'closed' && world.grants.some(isOpen)) return
  const { id } = await test.service.app.db.one<{ id: string }>(sql`
    insert into role_grant (actor_id, role, scope_kind, scope_id, created_at, expires_at, closed_at)
    values (${actor.id}::uuid, ${role}, ${scope.scope_kind}, ${scope.scope_id}::uuid, '2026-01-01',
      ${until}::timestamptz, ${lasts === 'closed' ? past : null}::timestamptz) returning id`)
  world.grants.push({
    ...{ id, actor, role, scope, until, end: lasts === 'closed' ? 'closed' : null },
    ...{ by: null, offer: null, revoked_by: null, revoked_reason: null },
  })
}

export async function expire({ test }: Stage, grant: Grant): Promise<void> {
  grant.until = past
  await test.service.app.db.run(
    sql`update role_grant set expires_at = ${past}::timestamptz where id = ${grant.id}::uuid`,
  )
}

export async function lapse({ test }: Stage, offer: Offer): Promise<void> {
  offer.expires_at = past
  await test.service.app.db.run(
    sql`update role_grant_offer set expires_at = ${past}::timestamptz where offer_id = ${offer.id}::uuid`,
  )
}

/** Restores an account, and signs it in again, as its sessions have ended. */
export async function restore(stage: Stage, account: Account): Promise<object> {
  const answer = await stage.test.service.operations.undeleteAccount({ account_id: account.id }, operator)
  if (answer.undeleted) await signIn(stage, account)
  return answer
}

export const destroy = ({ test }: Stage, scope: Scope): Promise<object> =>
  test.service.operations.destroyScope(scope as { scope_kind: string; scope_id: string }, operator)

export const pick = <T>(all: readonly T[], nth: number): T => all[nth % all.length] as T

/** The place of an actor in the world, by which the stage calls. */
export const numberOf = ({ actors }: World, actor: Actor): number => actors.indexOf(actor)

/** The actor that a call names: one of the account, unless it is meant to be a wrong one. */
export function chosenActor(
  { actors }: World,
  account: Account,
  named: { nth: number; ofAnother: boolean } | null,
): Actor | null {
  if (named === null) return null
  return pick(
    actors.filter((one) => (one.account === account) !== named.ofAnother),
    named.nth,
  )
}
