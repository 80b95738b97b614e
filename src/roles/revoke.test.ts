import { describe, expect, it } from 'vitest'
import {
  expire,
  globally,
  grantsOf,
  heard,
  holder,
  inRoom,
  lapse,
  nobody,
  registries,
  removeActor,
} from '../../test/helpers/offers.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount, type TestService, testService } from '../testing/index.ts'

const test = await serviceForFile({ ...registries, limit_role_write: 'off', limit_role_revoke: 'off' })
const admin = await test.account({ roles: ['admin'] })

type Held = Pick<TestAccount, 'id' | 'actor_id'> & { role_grant_id: string }
type World = { test: TestService; admin: TestAccount }
const here: World = { test, admin }
const by = { via: 'cli' }

/** Who revokes a grant, and what the log then says. */
const revokers = [
  {
    who: 'an admin',
    end: ({ admin }: World, { actor_id, role_grant_id }: Held, more: object = {}): Promise<unknown> =>
      admin.client.role_grant_revoke({ actor_id, role_grant_id, ...more }),
    actor: ({ admin }: World) => ({ actor_id: admin.actor_id, account_id: admin.id }),
    cause: 'admin',
    via: {},
  },
  {
    who: 'an operator',
    end: ({ test }: World, { actor_id, role_grant_id }: Held, more: object = {}): Promise<unknown> =>
      test.service.operations.revokeRole({ actor_id, role_grant_id, ...more }, by),
    actor: () => ({ actor_id: null, account_id: null }),
    cause: 'library',
    via: by,
  },
]
const told = (one: Held, more: object = {}) => ({
  account_id: one.id,
  method: 'role_grant_revoke' as const,
  params: { role_grant_id: one.role_grant_id, role: 'teacher', scope_id: null, ...more },
})

describe.each(revokers)('a grant revoked by $who', ({ end, actor, cause, via }) => {
  const row = (one: Held, metadata: object, world = here, outcome: 'success' | 'failure' = 'success') => ({
    event_type: 'role_grant_revoke',
    outcome,
    ...actor(world),
    target_actor_id: one.actor_id,
    target_account_id: one.id,
    metadata: { role_grant_id: one.role_grant_id, ...metadata, ...via },
  })
  const done = (one: Held, role = 'teacher', world = here) => row(one, { role, ...globally, cause }, world)
  const refused = (one: Held, reason: string, role: string, world = here) => ({
    reason,
    audit: [row(one, { reason, role }, world, 'failure')],
  })

  it.each([
    [undefined, null],
    [null, null],
    ['', ''],
    ['Left the school', 'Left the school'],
  ])('with the reason %j ends once, and its holder is told', async (reason, stored) => {
    const ada = await holder(test)
    await scenario(test, () => end(here, ada, reason === undefined ? {} : { reason }), {
      audit: [done(ada)],
      notify: [told(ada, stored === null ? {} : { reason: stored })],
    })
    expect(await grantsOf(test, ada.actor_id)).toMatchObject([
      { is_active: false, revoked_by: actor(here).actor_id, revoked_reason: stored },
    ])
    await scenario(test, () => end(here, ada), { reason: 'role_grant_not_found' })
    expect((await test.service.operations.findAccount({ ref: ada.id })).role_grants).toEqual([])
  })

  it('is not found under another actor, nor when it is expired or unknown', async () => {
    const [ada, bob, expired] = [await holder(test), await test.account(), await holder(test)]
    await expire(test, expired.role_grant_id)
    for (const target of [
      { ...ada, actor_id: bob.actor_id },
      { ...ada, actor_id: nobody },
      { ...ada, role_grant_id: nobody },
      expired,
    ])
      await scenario(test, () => end(here, target), { reason: 'role_grant_not_found' })
    expect(await grantsOf(test, ada.actor_id)).toMatchObject([{ is_active: true }])
  })

  it('is never the last global one of an admin; a deleted second admin does not count', async () => {
    const own = await testService()
    try {
      const world = { test: own, admin: await own.account({ roles: ['admin'] }) }
      const [grant] = await grantsOf(own, world.admin.actor_id)
      const self = { ...world.admin, role_grant_id: grant?.id as string }
      const last = refused(self, 'cannot_revoke_last_admin', 'admin', world)
      await scenario(own, () => end(world, self), last)
      const second = await holder(own, 'admin')
      await second.client.account_delete()
      await scenario(own, () => end(world, self), last)
      await world.admin.client.account_undelete({ account_id: second.id })
      await scenario(own, () => end(world, self), {
        audit: [done(self, 'admin', world)],
        notify: [told(self, { role: 'admin' })],
      })
      await expect(world.admin.client.admin_account_list()).rejects.toMatchObject({
        reason: 'insufficient_permissions',
      })
    } finally {
      await own.close()
    }
  })

  it('takes along the offers that wait for it and those made by it, and no others', async () => {
    const [ada, eve, bob] = [await holder(test), await holder(test), await test.account()]
    const second = await test.actor(ada.id, 'second')
    await test.roleGrant({ actor_id: eve.actor_id, role: 'guide' })
    await test.roleGrant({ actor_id: ada.actor_id, role: 'teacher', ...inRoom })
    const offer = async (from: TestAccount, to: TestAccount, more: object = {}) => {
      const input = { to_account_id: to.id, role: 'teacher', acting: from.actor_id, ...more }
      return (await from.client.role_grant_offer_create(input)).offer
    }
    const elsewhere = { scope_kind: 'classroom', scope_id: nobody }
    const otherKind = { scope_kind: 'team', scope_id: inRoom.scope_id }
    const ended = [
      { offer: await offer(eve, ada), from: eve, to: ada, reason: 'role_grant_revoked' },
      { offer: await offer(ada, bob), from: ada, to: bob, reason: 'grantor_lost_authority' },
      { offer: await offer(ada, bob, elsewhere), from: ada, to: bob, reason: 'grantor_lost_authority' },
      { offer: await offer(ada, bob, otherKind), from: ada, to: bob, reason: 'grantor_lost_authority' },
    ].sort((a, b) => (a.offer.offer_id < b.offer.offer_id ? -1 : 1))
    const stay = [
      await offer(eve, ada, { to_actor_id: second }),
      await offer(eve, ada, inRoom),
      await offer(eve, ada, { role: 'guide' }),
      await offer(eve, bob),
      // Another grant of hers still authorises it.
      await offer(ada, bob, inRoom),
    ]
    const lapsed = await offer(await holder(test), ada)
    await lapse(test, lapsed.offer_id)
    const sent = await heard(test, () =>
      scenario(test, () => end(here, ada), {
        audit: [
          done(ada),
          ...ended.map(({ offer: { offer_id, role, scope_kind, scope_id }, to, reason }) => ({
            event_type: 'role_grant_offer_supersede',
            ...actor(here),
            target_account_id: to.id,
            target_actor_id: null,
            metadata: { offer_id, role, scope_kind, scope_id, reason, cause_id: ada.role_grant_id, ...via },
          })),
        ],
        notify: [
          told(ada),
          ...ended.map(({ from }) => ({
            account_id: from.id,
            method: 'role_grant_offer_supersede' as const,
          })),
        ],
      }),
    )
    expect(sent.slice(1).map(({ params }) => params)).toEqual(
      ended.map(({ offer, reason }) => ({
        offer: { ...offer, superseded_at: expect.any(String) },
        reason,
        cause_id: ada.role_grant_id,
      })),
    )
    const left = await test.service.app.db.rows<{ offer_id: string }>(sql`
      select offer_id from role_grant_offer where superseded_at is null
        and ${ada.id}::uuid in (from_account_id, to_account_id)`)
    const ids = [
      ...stay.filter(({ from_account_id: from, to_account_id: to }) => [from, to].includes(ada.id)),
      lapsed,
    ]
    expect(left.map(({ offer_id }) => offer_id).sort()).toEqual(ids.map(({ offer_id }) => offer_id).sort())
    expect((await bob.client.role_grant_offer_list()).offers).toEqual(
      expect.arrayContaining([stay[3], stay[4]]),
    )
  })

  it('ends also of a deleted account or a removed actor', async () => {
    const [ada, bob] = [await holder(test), await holder(test)]
    await ada.client.account_delete()
    await removeActor(test, bob.actor_id)
    for (const one of [ada, bob])
      await scenario(test, () => end(here, one), { audit: [done(one)], notify: [told(one)] })
  })

  it('ends an admin grant that was planted at a scope without the guard, which opens nothing anyway', async () => {
    const ada = await test.account()
    const planted = await test.service.app.db.first<{ id: string }>(sql`
      insert into role_grant (actor_id, role, scope_kind, scope_id)
      values (${ada.actor_id}::uuid, 'admin', 'team', ${nobody}::uuid) returning id`)
    await expect(ada.client.admin_account_list()).rejects.toMatchObject({
      reason: 'insufficient_permissions',
    })
    await end(here, { ...ada, role_grant_id: planted?.id as string })
    expect(await grantsOf(test, ada.actor_id)).toMatchObject([{ is_active: false }])
  })

  it('is refused, with a row, where its role does not let it go this way', async () => {
    const [reason, roles, free] =
      cause === 'admin'
        ? ['role_not_web_grantable', ['inner', 'closed', 'keeper', 'forgotten'], []]
        : ['role_grant_path_not_allowed', ['keeper'], ['inner', 'closed', 'forgotten']]
    for (const role of [...roles, ...free]) {
      const ada = await holder(test, role)
      const { role_grants } = await test.service.operations.findAccount({ ref: ada.id })
      expect(role_grants).toMatchObject([{ id: ada.role_grant_id, role }])
      if (roles.includes(role)) await scenario(test, () => end(here, ada), refused(ada, reason, role))
      else await end(here, ada)
      expect(await grantsOf(test, ada.actor_id)).toMatchObject([{ is_active: roles.includes(role) }])
    }
  })
})

it('role_grant_revoke answers what it did, and is for admins', async () => {
  const ada = await holder(test)
  const input = { actor_id: ada.actor_id, role_grant_id: ada.role_grant_id }
  await scenario(test, () => ada.client.role_grant_revoke(input), { reason: 'insufficient_permissions' })
  expect(await admin.client.role_grant_revoke(input)).toEqual({ ok: true, revoked: true })
})

it('a grant ends even if thousands of offers depend on it, too many for work that grows with their square', async () => {
  const [ada, bob] = [await holder(test), await test.account()]
  const count = 12_000
  await test.service.app.db.run(sql`
    insert into role_grant_offer (from_actor_id, from_account_id, to_account_id, role, scope_kind, scope_id, expires_at)
    select ${ada.actor_id}::uuid, ${ada.id}::uuid, ${bob.id}::uuid, 'teacher', 'team', gen_random_uuid(),
      now() + interval '1 day'
    from generate_series(1, ${count}::int)`)
  await admin.client.role_grant_revoke({ actor_id: ada.actor_id, role_grant_id: ada.role_grant_id })
  const [superseded] = await test.service.app.db.rows(sql`
    select count(*)::int as offers from role_grant_offer
    where from_actor_id = ${ada.actor_id}::uuid and superseded_at is not null`)
  expect(superseded).toEqual({ offers: count })
})
