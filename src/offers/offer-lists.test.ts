import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { holder, lapse, nobody, registries, removeActor } from '../../test/helpers/offers.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'
import { Offer } from '../wire/offer.ts'

let ada: TestAccount
let bob: TestAccount
const test = await serviceForFile({ ...registries, limit_role_write: 'off' })
beforeEach(async () => {
  ada = await holder(test)
  bob = await test.account()
})

const create = async (more: object = {}, from = ada, to = bob) =>
  (await from.client.role_grant_offer_create({ to_account_id: to.id, role: 'teacher', ...more })).offer
const ids = (page: { offers: Offer[] }) => page.offers.map(({ offer_id }) => offer_id)
const inbox = async (account = bob) => ids(await account.client.role_grant_offer_list())
const history = async (account: TestAccount) => ids(await account.client.role_grant_offer_history())

/** Many offers with the same timestamp, so that only the id orders them. */
const many = async (count: number) => {
  const rows = await test.service.app.db.rows<{ offer_id: string }>(sql`
    insert into role_grant_offer (from_actor_id, from_account_id, to_account_id, role, scope_kind, scope_id, expires_at)
    select ${ada.actor_id}::uuid, ${ada.id}::uuid, ${bob.id}::uuid, 'teacher', 'classroom', gen_random_uuid(),
      now() + interval '1 day' from generate_series(1, ${count}::int)
    returning offer_id`)
  return rows.map(({ offer_id }) => offer_id).sort()
}
type Method = 'role_grant_offer_list' | 'role_grant_offer_history'
async function walk(method: Method, limit: number): Promise<string[][]> {
  const pages = []
  for (let cursor: string | null = null; ; ) {
    const page: { offers: Offer[]; next_cursor: string | null } = await bob.client[method]({ limit, cursor })
    pages.push(ids(page))
    if (page.next_cursor === null) return pages
    cursor = page.next_cursor
  }
}

describe('role_grant_offer_list', () => {
  it('shows what waits for the account, soonest expiry first, whoever of its actors is named', async () => {
    const second = await test.actor(bob.id, 'second')
    const late = await create({ expires_in_days: 3, to_actor_id: second })
    const soon = await create({ expires_in_days: 1 })
    const other = await create({ expires_in_days: 2 }, await holder(test))
    await create({}, ada, await test.account())
    const page = await bob.client.role_grant_offer_list({ acting: bob.actor_id })
    expect(page).toEqual({ offers: [soon, other, late], next_cursor: null })
    for (const offer of page.offers)
      expect(Object.keys(offer).sort()).toEqual(Object.keys(Offer.shape).sort())
  })

  it('leaves out what ended or lapsed, swept or not', async () => {
    const eve = await holder(test)
    const [declined, retracted, lapsed, left] = [
      await create(),
      await create({ to_actor_id: bob.actor_id }),
      await create({ role: 'teacher' }, eve),
      await create({ scope_kind: 'team', scope_id: nobody }),
    ]
    await bob.client.role_grant_offer_decline({ offer_id: declined.offer_id })
    await ada.client.role_grant_offer_retract({ offer_id: retracted.offer_id })
    await lapse(test, lapsed.offer_id)
    expect(await inbox()).toEqual([left.offer_id])
    await test.service.operations.cleanUp()
    expect(await inbox()).toEqual([left.offer_id])
    expect(new Set(await history(bob))).toEqual(
      new Set([declined, retracted, lapsed, left].map(({ offer_id }) => offer_id)),
    )
  })

  it('leaves out those of a deleted or removed grantor, has them again after undelete, and never after a purge', async () => {
    const admin = await test.account({ roles: ['admin'] })
    const made = [
      await create(),
      await create({ to_actor_id: bob.actor_id }),
      await create({ scope_kind: 'team', scope_id: nobody }),
    ]
    const made_ids = made.map(({ offer_id }) => offer_id).sort()
    await ada.client.account_delete()
    expect(await inbox()).toEqual([])
    expect(ids(await admin.client.role_grant_offer_history({ account_id: ada.id })).sort()).toEqual(made_ids)
    await admin.client.account_undelete({ account_id: ada.id })
    expect((await inbox()).sort()).toEqual(made_ids)
    await removeActor(test, ada.actor_id)
    expect(await inbox()).toEqual([])
    await test.service.operations.purgeAccount({ account_id: ada.id, confirm: true }, { via: 'testing' })
    expect(await inbox()).toEqual([])
    const { offers } = await bob.client.role_grant_offer_history()
    expect(offers.map(({ superseded_at }) => superseded_at)).toEqual(Array(3).fill(expect.any(String)))
  })

  it('is empty, with and without params', async () => {
    expect(await bob.client.role_grant_offer_list()).toEqual({ offers: [], next_cursor: null })
    expect(await bob.client.role_grant_offer_list({ account_id: null, limit: null, cursor: null })).toEqual({
      offers: [],
      next_cursor: null,
    })
  })
})

describe('role_grant_offer_history', () => {
  it('shows offers to and from the account in every state, newest first, each once', async () => {
    const eve = await holder(test)
    const first = await create()
    const second = await create({}, eve, ada)
    await ada.client.role_grant_offer_accept({ offer_id: second.offer_id })
    const third = await create({}, eve)
    expect(await history(ada)).toEqual([second.offer_id, first.offer_id])
    expect(await history(bob)).toEqual([third.offer_id, first.offer_id])
    expect(await history(eve)).toEqual([third.offer_id, second.offer_id])
    const [shown] = (await ada.client.role_grant_offer_history()).offers
    expect(shown).toMatchObject({ accepted_at: expect.any(String) })
    expect(Object.keys(shown ?? {}).sort()).toEqual(Object.keys(Offer.shape).sort())
  })

  it('keeps an accepted offer whose grantor is purged, and the grant with it', async () => {
    const offer = await create()
    const { role_grant_id } = await bob.client.role_grant_offer_accept({ offer_id: offer.offer_id })
    const via = { via: 'cli' }
    await test.service.operations.purgeAccount({ account_id: ada.id, confirm: true }, via)
    expect((await bob.client.role_grant_offer_history()).offers).toMatchObject([
      { from_actor_id: ada.actor_id, resulting_role_grant_id: role_grant_id },
    ])
    const { role_grants } = await test.service.operations.findAccount({ ref: bob.id })
    expect(role_grants).toMatchObject([{ id: role_grant_id, granted_by: ada.actor_id }])
  })

  it('keeps an accepted offer whose grant went with its actor', async () => {
    const offer = await create()
    await bob.client.role_grant_offer_accept({ offer_id: offer.offer_id })
    const acting = await test.actor(bob.id, 'second')
    await test.service.app.db.run(sql`delete from actor where id = ${bob.actor_id}`)
    expect((await bob.client.role_grant_offer_history({ acting })).offers).toMatchObject([
      { accepted_at: expect.any(String), resulting_role_grant_id: null },
    ])
  })
})

describe.each(['role_grant_offer_list', 'role_grant_offer_history'] as const)('%s', (method) => {
  it('has no row twice, and all that stay, while others are made and end', async () => {
    const all = await many(60)
    const ending = all.filter((_id, i) => i % 3 === 0)
    const eve = await holder(test)
    const writing = (async () => {
      for (const [i, offer_id] of ending.entries()) {
        if (i % 2 === 0) await bob.client.role_grant_offer_decline({ offer_id })
        else await ada.client.role_grant_offer_retract({ offer_id })
        if (i % 5 === 0) await create({ scope_kind: 'team', scope_id: randomUUID() }, eve)
      }
      return 'done'
    })()
    const walks: string[][] = []
    const walking = async () => {
      for (let isOver = false; !isOver; ) {
        isOver = (await Promise.race([writing, 'writing'])) === 'done'
        walks.push((await walk(method, 4)).flat())
      }
    }
    await Promise.all([writing, walking()])
    const staying = all.filter((id) => !ending.includes(id))
    for (const seen of walks) {
      expect(new Set(seen).size).toBe(seen.length)
      expect(seen).toEqual(expect.arrayContaining(staying))
    }
  })

  it('of another account is for global admins, whether or not there is such an account', async () => {
    await many(2)
    const admin = await test.account({ roles: ['admin'] })
    const scoped = await test.account()
    await test.service.app.db.run(sql`
      insert into role_grant (actor_id, role, scope_kind, scope_id)
      values (${scoped.actor_id}::uuid, 'admin', 'team', ${nobody}::uuid)`)
    for (const { client } of [await test.account(), scoped])
      for (const account_id of [bob.id, nobody]) {
        const outcome = await client.try[method]({ account_id })
        expect(outcome.ok ? outcome : [outcome.error.status, outcome.error.data]).toEqual([
          403,
          { reason: 'insufficient_permissions', required_roles: ['admin'] },
        ])
      }
    expect((await admin.client[method]({ account_id: bob.id })).offers).toHaveLength(2)
    expect((await admin.client[method]({ account_id: nobody })).offers).toEqual([])
    expect((await bob.client[method]({ account_id: bob.id })).offers).toHaveLength(2)
  })
})
