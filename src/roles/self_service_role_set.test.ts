import { beforeEach, describe, expect, it } from 'vitest'
import { expire, globally, grantsOf, heard, holder, inRoom, registries } from '../../test/helpers/offers.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { StartError } from '../errors.ts'
import { createRegistry } from '../registry/registry.ts'
import { scenario, type TestAccount, testService } from '../testing/index.ts'

let ada: TestAccount
const test = await serviceForFile({ ...registries, limit_role_write: 'off', self_service_roles: ['guide'] })
beforeEach(async () => {
  ada = await test.account()
})

const set =
  (enabled: boolean, role = 'guide') =>
  () =>
    ada.client.self_service_role_set({ role, enabled })
const row = (event_type: string, metadata: object) => ({
  event_type,
  actor_id: ada.actor_id,
  account_id: ada.id,
  target_actor_id: ada.actor_id,
  target_account_id: ada.id,
  metadata: { role: 'guide', ...globally, ...metadata },
})

describe('self_service_role_set', () => {
  it('confers the role on the acting actor; once it is held, nothing changes', async () => {
    const on = { ok: true, enabled: true }
    expect(await scenario(test, set(true), { audit: [{ event_type: 'role_grant_create' }] })).toEqual({
      ...on,
      changed: true,
    })
    const [grant] = await grantsOf(test, ada.actor_id)
    expect(grant).toMatchObject({ granted_by: ada.actor_id, expires_at: null, is_active: true })
    expect(await scenario(test, set(true))).toEqual({ ...on, changed: false })
  })

  it('ends it, whoever granted it, and tells the holder; without it nothing changes', async () => {
    const off = { ok: true, enabled: false }
    expect(await scenario(test, set(false))).toEqual({ ...off, changed: false })
    const { role_grant_id } = await test.roleGrant({ actor_id: ada.actor_id, role: 'guide' })
    expect(
      await scenario(test, set(false), {
        audit: [row('role_grant_revoke', { role_grant_id, cause: 'self_service' })],
        notify: [
          {
            account_id: ada.id,
            method: 'role_grant_revoke',
            params: { role_grant_id, role: 'guide', scope_id: null },
          },
        ],
      }),
    ).toEqual({ ...off, changed: true })
    expect(await grantsOf(test, ada.actor_id)).toMatchObject([
      { is_active: false, revoked_by: ada.actor_id, revoked_reason: null },
    ])
    expect(await scenario(test, set(false))).toEqual({ ...off, changed: false })
    await set(true)()
    const [, again] = await grantsOf(test, ada.actor_id)
    expect(again).toMatchObject({ is_active: true })
  })

  it('over an expired grant makes a new one', async () => {
    const { role_grant_id } = await test.roleGrant({ actor_id: ada.actor_id, role: 'guide' })
    await expire(test, role_grant_id)
    expect(await set(false)()).toMatchObject({ changed: false })
    expect(await set(true)()).toMatchObject({ changed: true })
    expect((await grantsOf(test, ada.actor_id)).map(({ is_active }) => is_active)).toEqual([false, true])
  })

  it('neither counts nor touches grants at a scope', async () => {
    await test.roleGrant({ actor_id: ada.actor_id, role: 'guide', ...inRoom })
    expect(await set(false)()).toMatchObject({ changed: false })
    expect(await set(true)()).toMatchObject({ changed: true })
    expect(await set(false)()).toMatchObject({ changed: true })
    expect((await grantsOf(test, ada.actor_id)).map(({ is_active }) => is_active)).toEqual([true, false])
  })

  it('ends the offers that depended on it', async () => {
    const [eve, bob] = [await holder(test, 'guide'), await test.account()]
    await set(true)()
    await eve.client.role_grant_offer_create({ to_account_id: ada.id, role: 'guide' })
    await ada.client.role_grant_offer_create({ to_account_id: bob.id, role: 'guide' })
    const superseded = { event_type: 'role_grant_offer_supersede', actor_id: ada.actor_id }
    const sent = await heard(test, () =>
      scenario(test, set(false), {
        audit: [{ event_type: 'role_grant_revoke' }, superseded, superseded],
        notify: [
          { method: 'role_grant_revoke' },
          { method: 'role_grant_offer_supersede' },
          { method: 'role_grant_offer_supersede' },
        ],
      }),
    )
    expect(
      sent
        .slice(1)
        .map(({ account_id }) => account_id)
        .sort(),
    ).toEqual([ada.id, eve.id].sort())
  })

  it('refuses every other role before it looks at enabled, without a row', async () => {
    for (const role of ['teacher', 'inner', 'nothing', 'admin', 'keeper'])
      for (const enabled of [true, false])
        await scenario(test, set(enabled, role), { reason: 'role_not_self_service_eligible' })
  })

  it('works for the actor that acts', async () => {
    const acting = await test.actor(ada.id, 'second')
    await ada.client.self_service_role_set({ role: 'guide', enabled: true, acting })
    expect(await grantsOf(test, acting)).toHaveLength(1)
    expect(await grantsOf(test, ada.actor_id)).toHaveLength(0)
  })
})

describe('the option self_service_roles', () => {
  it('left out leaves the method out; with no roles it is there and refuses', async () => {
    for (const [options, reason] of [
      [{}, 'method_not_found'],
      [{ self_service_roles: [] }, 'role_not_self_service_eligible'],
    ] as const) {
      const own = await testService({ ...registries, ...options })
      const { client } = await own.account()
      await expect(client.self_service_role_set({ role: 'guide', enabled: true })).rejects.toMatchObject({
        reason,
      })
      await own.close()
    }
  })

  it('stops the start where it names no registered role with that path', () => {
    for (const role of ['teacher', 'nothing', 'admin'])
      expect(() => createRegistry({ ...registries, self_service_roles: [role] })).toThrow(
        expect.toSatisfy((error) => error instanceof StartError && error.message.includes(`"${role}"`)),
      )
  })
})
