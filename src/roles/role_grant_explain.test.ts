import { describe, expect, it } from 'vitest'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile({
  roles: [{ name: 'clerk', grant_paths: ['admin', 'self_service'] }],
  self_service_roles: ['clerk'],
})
const admin = await test.account({ roles: ['admin', 'clerk'] })
const label = { id: admin.actor_id, username: admin.username, display_name: admin.username }
const explain = (by: TestAccount, role_grant_id: string) => by.client.role_grant_explain({ role_grant_id })
const ended = { revoked_at: null, revoked_by: null, revoked_reason: null, dependent_offers: 0 }

describe('role_grant_explain', () => {
  it('names the offer that a role came by, who made it, and when it ends', async () => {
    const ada = await test.account()
    const grant_expires_at = '2040-01-01T00:00:00.000Z'
    const { offer } = await admin.client.role_grant_offer_create({
      to_account_id: ada.id,
      role: 'clerk',
      message: 'Please help.',
      grant_expires_at,
    })
    const { role_grant_id } = await ada.client.role_grant_offer_accept({ offer_id: offer.offer_id })
    const { role_grants } = await ada.client.account.status()
    const explained = await scenario(test, () => explain(ada, role_grant_id.toUpperCase()))
    expect(explained).toEqual({
      ...ended,
      role_grant: role_grants.find(({ id }) => id === role_grant_id),
      account_id: ada.id,
      state: 'active',
      via: 'offer',
      granted_by: label,
      offer: {
        ...offer,
        accepted_at: expect.stringMatching(/^.{23}Z$/),
        resulting_role_grant_id: role_grant_id,
      },
    })
    expect(explained.role_grant).toMatchObject({ expires_at: grant_expires_at })
    expect(await explain(admin, role_grant_id)).toEqual(explained)
  })

  it('tells apart what an admin assigned, what one took oneself, and what the service gave', async () => {
    const [ada, bob, eve] = [await test.account(), await test.account(), await test.account()]
    const assigned = await admin.client.role_grant_assign({ to_account_id: ada.id, role: 'clerk' })
    await bob.client.self_service_role_set({ role: 'clerk', enabled: true })
    const [taken] = (await bob.client.account.status()).role_grants
    const given = await test.roleGrant({ actor_id: eve.actor_id, role: 'clerk' })
    expect(await explain(ada, assigned.role_grant_id)).toMatchObject({
      via: 'actor',
      granted_by: label,
      offer: null,
    })
    expect(await explain(bob, taken?.id ?? '')).toMatchObject({
      via: 'self',
      granted_by: { id: bob.actor_id },
    })
    expect(await explain(eve, given.role_grant_id)).toMatchObject({
      via: 'system',
      granted_by: null,
      offer: null,
    })
  })

  it('says how a role ended, and forgets the name of a removed grantor', async () => {
    const [ada, giver] = [await test.account(), await test.account({ roles: ['admin'] })]
    const { role_grant_id } = await giver.client.role_grant_assign({ to_account_id: ada.id, role: 'clerk' })
    await giver.client.account_delete()
    expect(await explain(ada, role_grant_id)).toMatchObject({
      state: 'active',
      role_grant: { granted_by: giver.actor_id },
      granted_by: null,
    })
    await admin.client.role_grant_revoke({ actor_id: ada.actor_id, role_grant_id, reason: 'Thank you.' })
    expect(await explain(ada, role_grant_id)).toMatchObject({
      state: 'revoked',
      revoked_at: expect.stringMatching(/^.{23}Z$/),
      revoked_by: admin.actor_id,
      revoked_reason: 'Thank you.',
    })
    const late = await test.roleGrant({
      actor_id: ada.actor_id,
      role: 'clerk',
      expires_at: '2020-01-01T00:00:00Z',
    })
    expect((await explain(ada, late.role_grant_id)).state).toBe('expired')
    const closed = await test.roleGrant({ actor_id: ada.actor_id, role: 'clerk' })
    await test.service.app.db.run(
      sql`update role_grant set closed_at = now() where id = ${closed.role_grant_id}::uuid`,
    )
    expect((await explain(ada, closed.role_grant_id)).state).toBe('expired')
  })

  it('of another account is not found, whether it exists or not, but for admins', async () => {
    const [ada, bob] = [await test.account({ roles: ['clerk'] }), await test.account()]
    const [grant] = (await ada.client.account.status()).role_grants
    expect(await reasonOf(explain(bob, grant?.id ?? ''))).toBe('role_grant_not_found')
    for (const by of [bob, admin])
      expect(await reasonOf(explain(by, crypto.randomUUID()))).toBe('role_grant_not_found')
  })

  it('counts the offers that end with the grant, as ending it then shows', async () => {
    const [ada, bob, eve] = [await test.account(), await test.account(), await test.account()]
    const { role_grant_id } = await admin.client.role_grant_assign({ to_account_id: ada.id, role: 'clerk' })
    const offer = (by: TestAccount, to: TestAccount) =>
      by.client.role_grant_offer_create({ to_account_id: to.id, role: 'clerk' })
    const falling = [
      (await offer(ada, bob)).offer.offer_id,
      (await offer(ada, eve)).offer.offer_id,
      (await offer(admin, ada)).offer.offer_id,
    ]
    const { offer: other } = await offer(admin, bob)
    expect(await explain(ada, role_grant_id)).toMatchObject({ dependent_offers: 3 })
    await admin.client.role_grant_revoke({ actor_id: ada.actor_id, role_grant_id })
    const { offers } = await admin.client.role_grant_offer_history({ account_id: ada.id })
    expect(
      offers
        .filter(({ superseded_at }) => superseded_at !== null)
        .map(({ offer_id }) => offer_id)
        .sort(),
    ).toEqual(falling.sort())
    expect(await explain(ada, role_grant_id)).toMatchObject({ state: 'revoked', dependent_offers: 0 })
    expect((await bob.client.role_grant_offer_list()).offers.map(({ offer_id }) => offer_id)).toEqual([
      other.offer_id,
    ])
  })
})
