import { describe, expect, it } from 'vitest'
import { expire, grantsOf, holder, inRoom, nobody, registries } from '../../test/helpers/offers.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { scenario } from '../testing/index.ts'

const test = await serviceForFile({ ...registries, limit_role_write: 'off' })

const by = { via: 'nightly_job' }
const everywhere = (input: { actor_id: string; role: string; reason?: string }) =>
  test.service.operations.revokeRoleEverywhere(input, by)

describe('revokeRoleEverywhere', () => {
  it('ends the role at every scope of the actor, with the offers that depended on any of it', async () => {
    const [ada, bob] = [await holder(test), await test.account()]
    const { actor_id } = ada
    await test.roleGrant({ actor_id, role: 'teacher', ...inRoom })
    await test.roleGrant({ actor_id, role: 'teacher', scope_kind: 'team', scope_id: nobody })
    await test.roleGrant({ actor_id, role: 'plain' })
    for (const scope of [{}, inRoom])
      await ada.client.role_grant_offer_create({ to_account_id: bob.id, role: 'teacher', ...scope })
    const revoked = (await grantsOf(test, actor_id)).filter(({ role }) => role === 'teacher')
    const ids = revoked.map(({ id }) => id).sort()
    const gone = { event_type: 'role_grant_revoke', target_actor_id: actor_id }
    const superseded = { event_type: 'role_grant_offer_supersede', target_account_id: bob.id }
    const done = await scenario(test, () => everywhere({ actor_id, role: 'teacher', reason: 'left' }), {
      audit: [gone, gone, gone, superseded, superseded],
      notify: [
        ...ids.map(() => ({ account_id: ada.id, method: 'role_grant_revoke' as const })),
        ...[1, 2].map(() => ({ account_id: ada.id, method: 'role_grant_offer_supersede' as const })),
      ],
    })
    expect(done.revoked.map(({ role_grant_id }) => role_grant_id)).toEqual(ids)
    expect(done.revoked).toContainEqual({
      role_grant_id: expect.any(String),
      role: 'teacher',
      ...inRoom,
      actor_id,
      account_id: ada.id,
    })
    expect(
      (await grantsOf(test, actor_id)).filter(({ is_active }) => is_active).map(({ role }) => role),
    ).toEqual(['plain'])
    expect(await scenario(test, () => everywhere({ actor_id, role: 'teacher' }))).toEqual({ revoked: [] })
  })

  it('finds nothing of an unknown actor, and no expired grant', async () => {
    const ada = await holder(test)
    await expire(test, ada.role_grant_id)
    for (const actor_id of [nobody, ada.actor_id])
      expect(await scenario(test, () => everywhere({ actor_id, role: 'teacher' }))).toEqual({ revoked: [] })
  })

  it('refuses keeper, and the last admin with a row', async () => {
    const ada = await holder(test, 'admin')
    const { actor_id, role_grant_id } = ada
    await scenario(test, () => everywhere({ actor_id, role: 'keeper' }), {
      reason: 'role_grant_path_not_allowed',
    })
    const reason = 'cannot_revoke_last_admin'
    await scenario(test, () => everywhere({ actor_id, role: 'admin' }), {
      reason,
      audit: [
        {
          event_type: 'role_grant_revoke',
          outcome: 'failure',
          target_actor_id: actor_id,
          target_account_id: ada.id,
          metadata: { reason, role: 'admin', role_grant_id, via: 'nightly_job' },
        },
      ],
    })
    await holder(test, 'admin')
    expect((await everywhere({ actor_id, role: 'admin' })).revoked).toHaveLength(1)
  })
})

it('offers to an account go with it when it is purged, accepted ones too', async () => {
  const [ada, bob] = [await holder(test), await test.account()]
  const to = { to_account_id: bob.id, role: 'teacher' }
  const { offer } = await ada.client.role_grant_offer_create(to)
  await bob.client.role_grant_offer_accept({ offer_id: offer.offer_id })
  await ada.client.role_grant_offer_create({ ...to, ...inRoom })
  await test.service.operations.purgeAccount({ account_id: bob.id, confirm: true }, by)
  expect((await ada.client.role_grant_offer_history()).offers).toEqual([])
})
