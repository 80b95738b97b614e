import { describe, expect, it } from 'vitest'
import {
  expire,
  globally,
  heard,
  holder,
  inRoom,
  lapse,
  nobody,
  otherRoom,
  registries,
  removeActor,
  room,
} from '../../test/helpers/offers.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { scenario, type TestAccount } from '../testing/index.ts'
import { Offer } from '../wire/offer.ts'

const test = await serviceForFile({ ...registries, limit_role_write: 'off' })

const dayMs = 86_400_000
const pair = async () => ({ ada: await holder(test), bob: await test.account() })
const row = (from: TestAccount, to: TestAccount, metadata: object, to_actor_id: string | null = null) => ({
  event_type: 'role_grant_offer_create',
  actor_id: from.actor_id,
  account_id: from.id,
  target_account_id: to.id,
  target_actor_id: to_actor_id,
  ip: '127.0.0.1',
  metadata: { role: 'teacher', ...globally, to_account_id: to.id, updated: false, ...metadata },
})
const received = (to: TestAccount, offer: unknown) => ({
  account_id: to.id,
  method: 'role_grant_offer_received',
  params: { offer },
})

describe('role_grant_offer_create', () => {
  it('makes a pending offer with exactly the 18 keys, one row and one notification to the recipient', async () => {
    const { ada, bob } = await pair()
    let made: { offer: Offer } | undefined
    const sent = await heard(test, async () => {
      made = await scenario(
        test,
        () => ada.client.role_grant_offer_create({ to_account_id: bob.id, role: 'teacher', message: 'Come' }),
        {
          audit: [
            { event_type: 'role_grant_offer_create', target_account_id: bob.id, target_actor_id: null },
          ],
          notify: [{ account_id: bob.id, method: 'role_grant_offer_received' }],
        },
      )
    })
    const offer = made?.offer as Offer
    expect(Object.keys(offer).sort()).toEqual(Object.keys(Offer.shape).sort())
    expect(offer).toEqual({
      offer_id: expect.any(String),
      from_actor_id: ada.actor_id,
      from_account_id: ada.id,
      to_account_id: bob.id,
      to_actor_id: null,
      role: 'teacher',
      ...globally,
      message: 'Come',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/),
      expires_at: new Date(Date.parse(offer.created_at) + 30 * dayMs).toISOString(),
      grant_expires_at: null,
      accepted_at: null,
      declined_at: null,
      decline_reason: null,
      retracted_at: null,
      superseded_at: null,
      resulting_role_grant_id: null,
    })
    expect(sent).toEqual([received(bob, offer)])
    expect(JSON.stringify(sent)).not.toContain(ada.username)
    const again = await scenario(
      test,
      () => ada.client.role_grant_offer_create({ to_account_id: bob.id, role: 'teacher' }),
      {
        audit: [row(ada, bob, { offer_id: offer.offer_id, updated: true })],
        notify: [{ account_id: bob.id, method: 'role_grant_offer_received' }],
      },
    )
    expect(again.offer).toMatchObject({
      offer_id: offer.offer_id,
      created_at: offer.created_at,
      message: null,
    })
  })

  it('repeated takes message, end of the offer and end of the grant from the repeat', async () => {
    const { ada, bob } = await pair()
    const offer = (more: object) =>
      ada.client.role_grant_offer_create({ to_account_id: bob.id, role: 'teacher', ...more })
    const grant_expires_at = new Date(Date.now() + 100 * dayMs).toISOString()
    const first = (await offer({ message: 'a', grant_expires_at, expires_in_days: 1 })).offer
    expect(first).toMatchObject({ message: 'a', grant_expires_at })
    const second = (await offer({ message: '', expires_in_days: 2 })).offer
    expect(second).toMatchObject({ offer_id: first.offer_id, message: '', grant_expires_at: null })
    expect(Date.parse(second.expires_at) - Date.parse(first.expires_at)).toBeGreaterThanOrEqual(dayMs)
    const third = (await offer({ grant_expires_at })).offer
    expect(third).toMatchObject({ offer_id: first.offer_id, message: null, grant_expires_at })
  })

  it('after a lapse makes a fresh offer, and stamps the lapsed one with its row', async () => {
    const { ada, bob } = await pair()
    const create = () =>
      ada.client.role_grant_offer_create({
        to_account_id: bob.id,
        to_actor_id: bob.actor_id,
        role: 'teacher',
        ...inRoom,
      })
    const { offer } = await create()
    await lapse(test, offer.offer_id)
    const fresh = await scenario(test, create, {
      audit: [
        {
          event_type: 'role_grant_offer_expire',
          actor_id: ada.actor_id,
          account_id: ada.id,
          target_account_id: bob.id,
          target_actor_id: bob.actor_id,
          ip: null,
          metadata: { offer_id: offer.offer_id, role: 'teacher', ...inRoom },
        },
        { event_type: 'role_grant_offer_create', target_actor_id: bob.actor_id },
      ],
      notify: [{ account_id: bob.id, method: 'role_grant_offer_received' }],
    })
    expect(fresh.offer.offer_id).not.toBe(offer.offer_id)
    await scenario(test, () => test.service.operations.cleanUp())
  })

  it.each([
    ['accepted', (bob: TestAccount, offer_id: string) => bob.client.role_grant_offer_accept({ offer_id })],
    ['declined', (bob: TestAccount, offer_id: string) => bob.client.role_grant_offer_decline({ offer_id })],
  ])('after it was %s makes a fresh offer', async (_state, end) => {
    const { ada, bob } = await pair()
    const create = () => ada.client.role_grant_offer_create({ to_account_id: bob.id, role: 'teacher' })
    const { offer } = await create()
    await end(bob, offer.offer_id)
    expect((await create()).offer).toMatchObject({
      offer_id: expect.not.stringContaining(offer.offer_id),
      accepted_at: null,
    })
  })

  it('for another grantor, scope or actor named is another offer', async () => {
    const [{ ada, bob }, eve] = [await pair(), await holder(test)]
    const second = await test.actor(bob.id, 'second')
    const to = { to_account_id: bob.id, role: 'teacher' }
    const made = [
      await ada.client.role_grant_offer_create(to),
      await eve.client.role_grant_offer_create(to),
      await ada.client.role_grant_offer_create({ ...to, ...inRoom }),
      await ada.client.role_grant_offer_create({ ...to, ...inRoom, scope_kind: 'team' }),
      await ada.client.role_grant_offer_create({ ...to, to_actor_id: bob.actor_id }),
      await ada.client.role_grant_offer_create({ ...to, to_actor_id: second }),
    ]
    expect(new Set(made.map(({ offer }) => offer.offer_id)).size).toBe(6)
  })

  it('ends with the grant that it would make, where that ends before', async () => {
    const { ada, bob } = await pair()
    const grant_expires_at = new Date(Date.now() + dayMs).toISOString()
    const { offer } = await ada.client.role_grant_offer_create({
      to_account_id: bob.id,
      role: 'teacher',
      grant_expires_at,
    })
    expect(offer).toMatchObject({ expires_at: grant_expires_at, grant_expires_at })
  })
})

describe('who may offer a role', () => {
  const create = (from: TestAccount, to: TestAccount, more: object) => () =>
    from.client.role_grant_offer_create({ to_account_id: to.id, role: 'teacher', ...more })
  const refused = (from: TestAccount, to: TestAccount, reason: string, more: object = {}) => ({
    reason,
    audit: [
      {
        event_type: 'role_grant_offer_create',
        outcome: 'failure' as const,
        actor_id: from.actor_id,
        account_id: from.id,
        target_account_id: null,
        target_actor_id: null,
        metadata: { reason, role: 'teacher', attempted_to_account_id: to.id, ...more },
      },
    ],
  })
  const no = 'role_grant_offer_not_authorized'

  it.each([
    ['a global holder', globally, globally, true],
    ['a global holder, at a scope', globally, inRoom, true],
    ['a holder at the scope', inRoom, inRoom, true],
    ['a holder at a scope, globally', inRoom, globally, false],
    ['a holder at another scope', inRoom, { ...inRoom, scope_id: otherRoom }, false],
    ['a holder at another kind of scope', inRoom, { ...inRoom, scope_kind: 'team' }, false],
  ])('%s: %j, %j: %s', async (_who, held, offered, may) => {
    const [ada, bob] = [await holder(test, 'teacher', held), await test.account()]
    const attempted = offered.scope_id === null ? {} : { attempted_scope_id: offered.scope_id }
    if (may)
      await scenario(test, create(ada, bob, offered), {
        audit: [{ event_type: 'role_grant_offer_create' }],
        notify: [{ method: 'role_grant_offer_received' }],
      } as never)
    else await scenario(test, create(ada, bob, offered), refused(ada, bob, no, attempted))
  })

  it('not an admin for being one, and nobody whose grant has ended', async () => {
    const [{ ada, bob }, admin] = [await pair(), await test.account({ roles: ['admin'] })]
    await scenario(test, create(admin, bob, {}), refused(admin, bob, no))
    await expire(test, ada.role_grant_id)
    await scenario(test, create(ada, bob, {}), refused(ada, bob, no))
  })

  it('not another actor of the holder’s account', async () => {
    const { ada, bob } = await pair()
    const acting = await test.actor(ada.id, 'second')
    await scenario(test, create(ada, bob, { acting }), refused({ ...ada, actor_id: acting }, bob, no))
  })

  it('nobody where the role has no path admin; an unregistered one is not recorded', async () => {
    const [ada, bob] = [await holder(test, 'inner'), await test.account()]
    const reason = 'role_grant_offer_role_not_grantable'
    for (const role of ['inner', 'closed', 'keeper'])
      await scenario(test, create(ada, bob, { role }), refused(ada, bob, reason, { role }))
    const { audit } = refused(ada, bob, reason)
    const metadata = { reason, attempted_to_account_id: bob.id }
    await scenario(test, create(ada, bob, { role: 'nothing' }), {
      reason,
      audit: [{ ...audit[0], metadata }],
    } as never)
  })

  it('not to the own account, even to another actor of it', async () => {
    const { ada } = await pair()
    const second = await test.actor(ada.id, 'second')
    const acting = ada.actor_id
    const reason = 'role_grant_offer_self_target'
    await scenario(test, create(ada, ada, { acting }), refused(ada, ada, reason))
    await scenario(
      test,
      create(ada, ada, { acting, to_actor_id: second }),
      refused(ada, ada, reason, { attempted_to_actor_id: second }),
    )
  })

  it('not to an account that is missing or deleted, without a row', async () => {
    const { ada, bob } = await pair()
    await bob.client.account_delete()
    for (const to of [bob, { ...bob, id: nobody }])
      await scenario(test, create(ada, to, {}), { reason: 'account_not_found' })
  })

  it('not to an actor that is missing, removed or of another account', async () => {
    const { ada, bob } = await pair()
    const removed = await test.actor(bob.id, 'removed')
    await removeActor(test, removed)
    const reason = 'role_grant_offer_actor_account_mismatch'
    for (const to_actor_id of [nobody, removed, ada.actor_id])
      await scenario(
        test,
        create(ada, bob, { to_actor_id }),
        refused(ada, bob, reason, { attempted_to_actor_id: to_actor_id }),
      )
  })

  it('not at a scope that the role or the registry does not know, without a row', async () => {
    const { ada, bob } = await pair()
    for (const [more, reason] of [
      [{ role: 'admin', ...inRoom }, 'role_grant_builtin_scoped'],
      [{ role: 'local', scope_kind: 'team', scope_id: room }, 'role_grant_scope_not_applicable'],
      [{ role: 'plain', ...inRoom }, 'role_grant_scope_not_applicable'],
    ] as const)
      await scenario(test, create(ada, bob, more), { reason })
  })

  it('is told the first of two refusals', async () => {
    const { ada, bob } = await pair()
    const scoped = { role: 'plain', ...inRoom }
    for (const [to, more, reason] of [
      [bob.id, { role: 'nothing', scope_kind: 'planet', scope_id: room }, 'invalid_params'],
      [bob.id, { role: 'keeper', ...inRoom }, 'role_grant_offer_role_not_grantable'],
      [ada.id, { role: 'closed' }, 'role_grant_offer_role_not_grantable'],
      [nobody, scoped, 'role_grant_scope_not_applicable'],
      [ada.id, scoped, 'role_grant_scope_not_applicable'],
      [ada.id, { role: 'plain' }, no],
      [nobody, { role: 'plain' }, no],
      [ada.id.toUpperCase(), { to_actor_id: bob.actor_id }, 'role_grant_offer_self_target'],
      [nobody, { to_actor_id: bob.actor_id }, 'account_not_found'],
    ] as const)
      expect([to, more, await reasonOf(create(ada, { ...bob, id: to }, more)())]).toEqual([to, more, reason])
  })
})
