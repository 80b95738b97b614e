import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { type Sql, sql } from '../../src/db/db.ts'
import { ServiceError } from '../../src/errors.ts'
import type { TestAccount, TestService } from '../../src/testing/index.ts'

/** Shared parts of the races of `races.ts`: contenders, their start, and the rules afterwards. */

/** The outcome of one run, such as `ok / cannot_delete_last_admin`: for counting, not for judging. */
export type Outcome = string

/** One run, from an empty database to its assertions; throws if a rule is broken. */
export type Race = (world: TestService) => Promise<Outcome>

export const operator = { via: 'race' }

export const admin = (world: TestService): Promise<TestAccount> => world.account({ roles: ['admin'] })

export type Contender = () => Promise<unknown>

export const call =
  ({ service }: TestService, { cookie }: TestAccount, method: string, params?: object): Contender =>
  () =>
    service.call(method, params, { headers: { cookie } })

export const login =
  (world: TestService, { username, password }: TestAccount): Contender =>
  () =>
    world.client().account.login({ username, password })

/** Revokes the only grant of an admin, which nobody else may have ended. */
export const revoke =
  (world: TestService, { actor_id }: TestAccount): Contender =>
  async () => {
    const [grant] = await rows<{ id: string }>(
      world,
      sql`select id from role_grant where actor_id = ${actor_id}::uuid and revoked_at is null`,
    )
    await world.service.operations.revokeRole({ actor_id, role_grant_id: grant?.id as string }, operator)
  }

/** Inserts an offer by SQL: only the foreign key to its recipient can block it. */
export const offer = (world: TestService, from: TestAccount, to: TestAccount): Promise<unknown> =>
  world.service.app.db.run(sql`
    insert into role_grant_offer (from_actor_id, from_account_id, to_account_id, role, expires_at)
    select ${from.actor_id}::uuid, ${from.id}::uuid, ${to.id}::uuid, 'admin', now() + interval '1 day'`)

/** Starts all in random order, at once or slightly apart; resolves to their outcomes, `ok` or the reason. */
export async function race(contenders: readonly Contender[]): Promise<string[]> {
  const spread = Math.random() < 0.3 ? 0 : Math.random() * 6
  return await Promise.all(
    contenders.map(async (contender) => {
      if (spread > 0) await delay(Math.random() * spread)
      try {
        await contender()
        return 'ok'
      } catch (error) {
        return reasonOf(error)
      }
    }),
  )
}

/** Only refusals are outcomes; any other error is a failure of the service. */
function reasonOf(error: unknown): string {
  if (error instanceof ServiceError) return error.data.reason
  const { reason, code } = error as { reason?: string; code?: string }
  if (code === '23503') return 'refused_by_constraint'
  if (reason === undefined) throw error
  return reason
}

export function only(outcomes: readonly string[], allowed: readonly string[]): void {
  for (const outcome of outcomes) assert.ok(allowed.includes(outcome), `${outcome} is no allowed outcome`)
}

export const rows = <T>({ service }: TestService, statement: Sql): Promise<T[]> =>
  service.app.db.rows<T>(statement)

export async function adminCount(world: TestService): Promise<number> {
  const admins = await rows(
    world,
    sql`select distinct account.id
      from role_grant g join actor on actor.id = g.actor_id join account on account.id = actor.account_id
      where g.role = 'admin' and g.scope_id is null and g.revoked_at is null and actor.deleted_at is null
        and account.deleted_at is null`,
  )
  return admins.length
}

export async function credentials(
  world: TestService,
  { id }: TestAccount,
): Promise<{ sessions: number; tokens: number }> {
  const [counts] = await rows<{ sessions: number; tokens: number }>(
    world,
    sql`select (select count(*) from auth_session where account_id = ${id}::uuid) as sessions,
      (select count(*) from api_token where account_id = ${id}::uuid) as tokens`,
  )
  return counts as { sessions: number; tokens: number }
}

/** Every row that belongs to an account. */
export const leftOf = (world: TestService, { id, actor_id }: TestAccount): Promise<unknown[]> =>
  rows(
    world,
    sql`select 'account' from account where id = ${id}::uuid
      union all select 'actor' from actor where account_id = ${id}::uuid
      union all select 'session' from auth_session where account_id = ${id}::uuid
      union all select 'token' from api_token where account_id = ${id}::uuid
      union all select 'grant' from role_grant where actor_id = ${actor_id}::uuid
      union all select 'offer' from role_grant_offer where to_account_id = ${id}::uuid
      union all select 'cell' from cell where created_by = ${actor_id}::uuid`,
  )
