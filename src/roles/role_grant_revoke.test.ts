import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  expire,
  globally,
  grantsOf,
  heard,
  holder,
  inRoom,
  nobody,
  registries,
} from '../../test/helpers/offers.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount, type TestService, testService } from '../testing/index.ts'

let test: TestService
let admin: TestAccount
beforeAll(async () => {
  test = await testService({ ...registries, limit_role_write: 'off', limit_role_revoke: 'off' })
  admin = await test.account({ roles: ['admin'] })
})
afterAll(() => test.close())

type Held = TestAccount & { role_grant_id: string }
const revoke = ({ actor_id, role_grant_id }: Pick<Held, 'actor_id' | 'role_grant_id'>, more: object = {}) =>
  admin.client.role_grant_revoke({ actor_id, role_grant_id, ...more })
const row = (one: Held, metadata: object, outcome: 'success' | 'failure' = 'success') => ({
  event_type: 'role_grant_revoke',
  outcome,
  actor_id: admin.actor_id,
  account_id: admin.id,
  target_actor_id: one.actor_id,
  target_account_id: one.id,
  metadata: { role_grant_id: one.role_grant_id, ...metadata },
})
const told = (one: Held, more: object = {}) => ({
  account_id: one.id,
  method: 'role_grant_revoke' as const,
  params: { role_grant_id: one.role_grant_id, role: 'teacher', scope_id: null, ...more },
})

describe('role_grant_revoke', () => {
  it.each([
    [undefined, null],
    [null, null],
    ['', ''],
    ['Left the school', 'Left the school'],
  ])('with the reason %j ends the grant and tells its holder', async (reason, stored) => {
    const ada = await holder(test)
    const answer = await scenario(test, () => revoke(ada, reason === undefined ? {} : { reason }), {
      audit: [row(ada, { role: 'teacher', ...globally, cause: 'admin' })],
      notify: [told(ada, stored === null ? {} : { reason: stored })],
    })
    expect(answer).toEqual({ ok: true, revoked: true })
    expect(await grantsOf(test, ada.actor_id)).toMatchObject([
      { is_active: false, revoked_by: admin.actor_id, revoked_reason: stored },
    ])
    await scenario(test, () => revoke(ada), { reason: 'role_grant_not_found' })
  })

  it('finds no grant under another actor, and no expired, unknown or ended one', async () => {
    const [ada, bob, expired] = [await holder(test), await test.account(), await holder(test)]
    await expire(test, expired.role_grant_id)
    for (const target of [
      { ...ada, actor_id: bob.actor_id },
      { ...ada, actor_id: nobody },
      { ...ada, role_grant_id: nobody },
      expired,
    ])
      await scenario(test, () => revoke(target), { reason: 'role_grant_not_found' })
    expect(await grantsOf(test, ada.actor_id)).toMatchObject([{ is_active: true }])
  })

  it('refuses roles without the path admin, and unregistered ones, with a row', async () => {
    const reason = 'role_not_web_grantable'
    for (const role of ['inner', 'closed', 'keeper', 'forgotten']) {
      const ada = await holder(test, role)
      await scenario(test, () => revoke(ada), { reason, audit: [row(ada, { reason, role }, 'failure')] })
      expect(await grantsOf(test, ada.actor_id)).toMatchObject([{ is_active: true }])
    }
  })

  it('refuses the last global admin, the caller included; a deleted second one does not count', async () => {
    const own = await testService()
    const before = [test, admin] as const
    test = own
    admin = await own.account({ roles: ['admin'] })
    try {
      const [grant] = await grantsOf(own, admin.actor_id)
      const self = { ...admin, role_grant_id: grant?.id as string }
      const refused = {
        reason: 'cannot_revoke_last_admin',
        audit: [row(self, { reason: 'cannot_revoke_last_admin', role: 'admin' }, 'failure')],
      }
      await scenario(own, () => revoke(self), refused)
      const second = await holder(own, 'admin')
      await second.client.account_delete()
      await scenario(own, () => revoke(self), refused)
      await admin.client.account_undelete({ account_id: second.id })
      await scenario(own, () => revoke(self), {
        audit: [row(self, { role: 'admin', ...globally, cause: 'admin' })],
        notify: [told(self, { role: 'admin' })],
      })
      await expect(admin.client.admin_account_list()).rejects.toMatchObject({
        reason: 'insufficient_permissions',
      })
    } finally {
      ;[test, admin] = before
      await own.close()
    }
  })

  it('ends the offers that wait for the grant, and those made by it, each with row and notification', async () => {
    const [ada, eve, bob] = [await holder(test), await holder(test), await test.account()]
    const waiting = await eve.client.role_grant_offer_create({ to_account_id: ada.id, role: 'teacher' })
    const made = await ada.client.role_grant_offer_create({
      to_account_id: bob.id,
      role: 'teacher',
      ...inRoom,
    })
    const ended = [
      { ...waiting, from: eve, to: ada, reason: 'role_grant_revoked' },
      { ...made, from: ada, to: bob, reason: 'grantor_lost_authority' },
    ].sort((a, b) => (a.offer.offer_id < b.offer.offer_id ? -1 : 1))
    const sent = await heard(test, () =>
      scenario(test, () => revoke(ada), {
        audit: [
          row(ada, { role: 'teacher', ...globally, cause: 'admin' }),
          ...ended.map(({ offer, to, reason }) => ({
            event_type: 'role_grant_offer_supersede',
            actor_id: admin.actor_id,
            account_id: admin.id,
            target_account_id: to.id,
            target_actor_id: null,
            metadata: {
              offer_id: offer.offer_id,
              role: 'teacher',
              scope_kind: offer.scope_kind,
              scope_id: offer.scope_id,
              reason,
              cause_id: ada.role_grant_id,
            },
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
  })

  it('leaves an offer whose grantor has another grant that authorises it', async () => {
    const [ada, bob] = [await holder(test), await test.account()]
    await test.roleGrant({ actor_id: ada.actor_id, role: 'teacher', ...inRoom })
    const { offer } = await ada.client.role_grant_offer_create({
      to_account_id: bob.id,
      role: 'teacher',
      ...inRoom,
    })
    await revoke(ada)
    expect((await bob.client.role_grant_offer_list()).offers).toEqual([offer])
  })

  it('ends what a deleted account or a removed actor still holds', async () => {
    const [ada, bob] = [await holder(test), await holder(test)]
    await ada.client.account_delete()
    await test.service.app.db.run(sql`update actor set deleted_at = now() where id = ${bob.actor_id}::uuid`)
    for (const one of [ada, bob]) expect(await revoke(one)).toEqual({ ok: true, revoked: true })
  })

  it('ends an admin grant that was planted at a scope without the guard, which opens nothing anyway', async () => {
    const ada = await test.account()
    const planted = await test.service.app.db.first<{ id: string }>(sql`
      insert into role_grant (actor_id, role, scope_kind, scope_id)
      values (${ada.actor_id}::uuid, 'admin', 'team', ${nobody}::uuid) returning id`)
    await expect(ada.client.admin_account_list()).rejects.toMatchObject({
      reason: 'insufficient_permissions',
    })
    expect(await revoke({ ...ada, role_grant_id: planted?.id as string })).toMatchObject({ revoked: true })
  })

  it('is for admins', async () => {
    const ada = await holder(test)
    const { actor_id, role_grant_id } = ada
    await scenario(test, () => ada.client.role_grant_revoke({ actor_id, role_grant_id }), {
      reason: 'insufficient_permissions',
    })
  })
})

describe('a grant whose role left the registry between two starts', () => {
  it('is listed, opens nothing, and is ended by library calls only', async () => {
    const ada = await test.account()
    const { role_grant_id } = await test.roleGrant({ actor_id: ada.actor_id, role: 'forgotten' })
    const { role_grants } = await test.service.operations.findAccount({ ref: ada.id })
    expect(role_grants).toMatchObject([{ id: role_grant_id, role: 'forgotten' }])
    await expect(revoke({ ...ada, role_grant_id })).rejects.toMatchObject({
      reason: 'role_not_web_grantable',
    })
    await test.service.operations.revokeRole({ actor_id: ada.actor_id, role_grant_id }, { via: 'cli' })
    expect(await grantsOf(test, ada.actor_id)).toMatchObject([{ is_active: false }])
  })
})
