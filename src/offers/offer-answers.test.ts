import { describe, expect, it } from 'vitest'
import { globally, heard, holder, inRoom, nobody, registries } from '../../test/helpers/offers.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario } from '../testing/index.ts'

const test = await serviceForFile({ ...registries, limit_role_write: 'off' })

async function offered(more: object = {}) {
  const [ada, bob] = [await holder(test), await test.account()]
  const { offer } = await ada.client.role_grant_offer_create({
    to_account_id: bob.id,
    role: 'teacher',
    ...more,
  })
  return { ada, bob, offer, offer_id: offer.offer_id }
}
const metadata = ({ offer_id }: { offer_id: string }, more: object = globally) => ({
  offer_id,
  role: 'teacher',
  ...more,
})

describe('role_grant_offer_decline', () => {
  it.each([
    ['Not now', 'Not now'],
    ['', ''],
    [null, null],
    [undefined, null],
  ])('with the reason %j ends the offer and tells the grantor', async (reason, stored) => {
    const { ada, bob, offer, offer_id } = await offered(inRoom)
    const sent = await heard(test, async () => {
      const answer = await scenario(
        test,
        () => bob.client.role_grant_offer_decline({ offer_id, ...(reason !== undefined && { reason }) }),
        {
          audit: [
            {
              event_type: 'role_grant_offer_decline',
              actor_id: bob.actor_id,
              account_id: bob.id,
              target_actor_id: ada.actor_id,
              target_account_id: ada.id,
              metadata: metadata(offer, inRoom),
            },
          ],
          notify: [{ account_id: ada.id, method: 'role_grant_offer_declined' }],
        },
      )
      expect(answer).toEqual({ ok: true })
    })
    const declined = { ...offer, declined_at: expect.any(String), decline_reason: stored }
    expect(sent[0]?.params).toEqual({ offer: declined })
    expect((await ada.client.role_grant_offer_history()).offers).toEqual([declined])
    await scenario(test, () => bob.client.role_grant_offer_decline({ offer_id }), {
      reason: 'role_grant_offer_terminal',
    })
  })

  it('is open to every actor of the account, also when the offer names another', async () => {
    const [ada, bob] = [await holder(test), await test.account()]
    const second = await test.actor(bob.id, 'second')
    const { offer } = await ada.client.role_grant_offer_create({
      to_account_id: bob.id,
      to_actor_id: second,
      role: 'teacher',
    })
    await bob.client.role_grant_offer_decline({ offer_id: offer.offer_id, acting: bob.actor_id })
    expect((await ada.client.role_grant_offer_history()).offers[0]?.declined_at).toEqual(expect.any(String))
  })

  it('of an unknown offer, or one to another account, is not found', async () => {
    const { ada, offer_id } = await offered()
    const admin = await test.account({ roles: ['admin'] })
    for (const [{ client }, id] of [
      [ada, offer_id],
      [admin, offer_id],
      [admin, nobody],
    ] as const)
      await scenario(test, () => client.role_grant_offer_decline({ offer_id: id }), {
        reason: 'role_grant_offer_not_found',
      })
  })

  it('takes a reason of 500 characters and no more', async () => {
    const { bob, offer_id } = await offered()
    const decline = (reason: string) => () => bob.client.role_grant_offer_decline({ offer_id, reason })
    await scenario(test, decline('x'.repeat(501)), { reason: 'invalid_params' })
    expect(await decline('x'.repeat(500))()).toEqual({ ok: true })
  })
})

describe('role_grant_offer_retract', () => {
  it('ends the offer and tells the recipient', async () => {
    const [ada, bob] = [await holder(test), await test.account()]
    const { offer } = await ada.client.role_grant_offer_create({
      to_account_id: bob.id,
      to_actor_id: bob.actor_id,
      role: 'teacher',
    })
    const retract = () => ada.client.role_grant_offer_retract({ offer_id: offer.offer_id })
    const sent = await heard(test, async () => {
      const answer = await scenario(test, retract, {
        audit: [
          {
            event_type: 'role_grant_offer_retract',
            actor_id: ada.actor_id,
            account_id: ada.id,
            target_actor_id: bob.actor_id,
            target_account_id: bob.id,
            metadata: metadata(offer),
          },
        ],
        notify: [{ account_id: bob.id, method: 'role_grant_offer_retracted' }],
      })
      expect(answer).toEqual({ ok: true })
    })
    expect(sent[0]?.params).toEqual({ offer: { ...offer, retracted_at: expect.any(String) } })
    await scenario(test, retract, { reason: 'role_grant_offer_terminal' })
  })

  it('is for the grantor actor alone: no other actor of the account, no recipient, no admin', async () => {
    const { ada, bob, offer_id } = await offered()
    const acting = await test.actor(ada.id, 'second')
    const admin = await test.account({ roles: ['admin'] })
    for (const call of [
      () => ada.client.role_grant_offer_retract({ offer_id, acting }),
      () => bob.client.role_grant_offer_retract({ offer_id }),
      () => admin.client.role_grant_offer_retract({ offer_id }),
      () => ada.client.role_grant_offer_retract({ offer_id: nobody, acting: ada.actor_id }),
    ])
      await scenario(test, call, { reason: 'role_grant_offer_not_found' })
    expect(await ada.client.role_grant_offer_retract({ offer_id, acting: ada.actor_id })).toEqual({
      ok: true,
    })
  })

  it('works without the role that was offered, and when the recipient is deleted', async () => {
    const { ada, bob, offer_id } = await offered()
    await bob.client.account_delete()
    await test.service.app.db.run(
      sql`update role_grant set closed_at = now(), expires_at = date_trunc('milliseconds', now()) where id = ${ada.role_grant_id}`,
    )
    expect(await ada.client.role_grant_offer_retract({ offer_id })).toEqual({ ok: true })
  })
})
