import { describe, expect, it } from 'vitest'
import { holder, registries } from '../../test/helpers/offers.ts'
import { workOf } from '../../test/helpers/plans.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'

/** Many offers of others, and many of one's own in every state, so that reading more than a page is noticed. */
const others = 20_000
const own = 3000
const page = 50

const test = await serviceForFile(registries)
const [ada, bob] = [await holder(test), await test.account()]
const { db } = test.service.app
const crowd = await test.account()
const offers = (from: TestAccount, to: TestAccount, count: number, superseded: boolean, at = db) =>
  at.run(sql`
    insert into role_grant_offer (from_actor_id, from_account_id, to_account_id, role, scope_kind, scope_id,
      created_at, expires_at, superseded_at)
    select ${from.actor_id}::uuid, ${from.id}::uuid, ${to.id}::uuid, 'teacher', 'team', gen_random_uuid(),
      now() - n * interval '1 second', now() + n * interval '1 minute', ${superseded ? sql`now()` : sql`null`}
    from generate_series(1, ${count}::int) n`)
await offers(ada, crowd, others, false)
for (const superseded of [true, false]) {
  await offers(ada, bob, own, superseded)
  await offers(crowd, bob, own, superseded)
  await offers(bob, crowd, own, superseded)
}
await db.run(sql`analyze role_grant_offer`)
await db.run(sql`analyze actor`)

it.each(['role_grant_offer_list', 'role_grant_offer_history'] as const)(
  'a page of %s, the first or a later one, reads little more than its rows',
  async (method) => {
    const { next_cursor } = await bob.client[method]({ limit: page })
    for (const cursor of [null, next_cursor]) {
      const work = await workOf(test.databaseUrl, () => bob.client[method]({ limit: page, cursor }))
      expect(work.scanned.filter((table) => table === 'role_grant_offer')).toEqual([])
      expect(work.rows.role_grant_offer).toBeLessThan(4 * page)
    }
  },
)

describe('with statistics from before all pending offers', async () => {
  const stale = await serviceForFile(registries)
  const [eve, fay] = [await holder(stale), await stale.account()]
  const root = await stale.account({ roles: ['admin'] })
  const { db: at } = stale.service.app
  const many = await Promise.all(Array.from({ length: 10 }, () => stale.account()))
  for (const from of many) for (const to of many) if (from !== to) await offers(from, to, 1, true, at)
  await at.run(sql`analyze role_grant_offer`)
  await offers(eve, fay, others, false, at)
  const [gil, hal] = [await holder(stale), await stale.account()]
  for (const [from, to] of [
    [gil, hal],
    [hal, gil],
  ] as const)
    await offers(from, to, 3, false, at)

  it.each<[string, () => Promise<unknown>]>([
    ['role_grant_offer_list', () => gil.client.role_grant_offer_list()],
    ['role_grant_explain', () => gil.client.role_grant_explain({ role_grant_id: gil.role_grant_id })],
    ['account_delete_preview', () => gil.client.account_delete_preview({ account_id: gil.id })],
    ['admin_account_get', () => root.client.admin_account_get({ account_id: gil.id })],
  ])('%s reads those of one account', async (_method, call) => {
    const { rows, scanned } = await workOf(stale.databaseUrl, call)
    expect(scanned).not.toContain('role_grant_offer')
    expect(rows.role_grant_offer ?? 0).toBeLessThan(20)
  })
})
