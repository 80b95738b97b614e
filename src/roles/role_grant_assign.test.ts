import { describe, expect, it } from 'vitest'
import { grantsOf, inRoom, nobody, registries, removeActor, room } from '../../test/helpers/offers.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { scenario } from '../testing/index.ts'

const test = await serviceForFile({ ...registries, limit_role_write: 'off' })
const admin = await test.account({ roles: ['admin'] })

const soon = '2998-01-01T00:00:00.000Z'
const assign = ({ id }: { id: string }, more: object = {}) =>
  admin.client.role_grant_assign({ to_account_id: id, role: 'teacher', ...more })

describe('role_grant_assign', () => {
  it('confers at once, with one row and no notification; pending offers stay', async () => {
    const [ada, bob] = [await test.account({ roles: ['teacher'] }), await test.account()]
    const { offer } = await ada.client.role_grant_offer_create({
      to_account_id: bob.id,
      role: 'teacher',
      ...inRoom,
    })
    const answer = await scenario(test, () => assign(bob, { ...inRoom, expires_at: soon }), {
      audit: [
        {
          event_type: 'role_grant_create',
          actor_id: admin.actor_id,
          account_id: admin.id,
          target_actor_id: bob.actor_id,
          target_account_id: bob.id,
        },
      ],
    })
    const [grant] = await grantsOf(test, bob.actor_id)
    expect(answer).toEqual({ ok: true, role_grant_id: grant?.id, created: true, expires_at: soon })
    expect(grant).toMatchObject({ granted_by: admin.actor_id, source_offer_id: null, is_active: true })
    expect((await bob.client.role_grant_offer_list()).offers).toEqual([offer])
  })

  it('gives the holder no right beyond the role: it offers what it holds, and where', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    await assign(ada, inRoom)
    const offer = (scope: object) =>
      ada.client.try.role_grant_offer_create({ to_account_id: bob.id, role: 'teacher', ...scope })
    expect([(await offer({})).ok, (await offer(inRoom)).ok]).toEqual([false, true])
  })

  it('takes any end up to that of the year 9999, which an offer confers too', async () => {
    const expires_at = '9999-12-31T23:59:59.999Z'
    const [ada, bob] = [await test.account(), await test.account()]
    expect(await assign(ada, { expires_at })).toMatchObject({ created: true, expires_at })
    const wanted = { to_account_id: bob.id, role: 'teacher', grant_expires_at: expires_at }
    const { offer } = await ada.client.role_grant_offer_create(wanted)
    await bob.client.role_grant_offer_accept({ offer_id: offer.offer_id })
    expect(await assign(bob, { expires_at: soon })).toMatchObject({ created: false, expires_at })
  })

  it('makes an admin, whose next call is let in', async () => {
    const ada = await test.account()
    await assign(ada, { role: 'admin' })
    expect((await ada.client.admin_account_list()).accounts.length).toBeGreaterThan(1)
  })

  it('of an account with several live actors must name one, and says which', async () => {
    const bob = await test.account({ username: 'several' })
    const second = await test.actor(bob.id, 'second')
    const removed = await test.actor(bob.id, 'removed')
    await removeActor(test, removed)
    const outcome = await admin.client.try.role_grant_assign({ to_account_id: bob.id, role: 'teacher' })
    expect(outcome.ok ? outcome : outcome.error.data).toEqual({
      reason: 'to_actor_required',
      available: [
        { id: bob.actor_id, name: 'several' },
        { id: second, name: 'second' },
      ],
    })
    await assign(bob, { to_actor_id: second })
    expect(await grantsOf(test, second)).toHaveLength(1)
    expect(await grantsOf(test, bob.actor_id)).toHaveLength(0)
    await removeActor(test, second)
    await assign(bob)
    expect(await grantsOf(test, bob.actor_id)).toHaveLength(1)
  })

  it.each([['inner'], ['closed'], ['keeper'], ['nothing']])(
    'refuses the role %s, with a row',
    async (role) => {
      const bob = await test.account()
      const reason = 'role_not_web_grantable'
      await scenario(test, () => assign(bob, { role, to_actor_id: bob.actor_id, ...inRoom }), {
        reason,
        audit: [
          {
            event_type: 'role_grant_create',
            outcome: 'failure',
            actor_id: admin.actor_id,
            account_id: admin.id,
            target_actor_id: null,
            target_account_id: null,
            metadata: {
              reason,
              ...(role !== 'nothing' && { role }),
              attempted_to_account_id: bob.id,
              attempted_to_actor_id: bob.actor_id,
              attempted_scope_id: room,
            },
          },
        ],
      })
      expect(await grantsOf(test, bob.actor_id)).toEqual([])
    },
  )

  it('refuses, without a row, what is not there or does not fit', async () => {
    const [bob, gone, empty, other] = [
      await test.account(),
      await test.account(),
      await test.account(),
      await test.account(),
    ]
    await gone.client.account_delete()
    await removeActor(test, empty.actor_id)
    for (const [target, more, reason] of [
      [bob, { role: 'admin', ...inRoom }, 'role_grant_builtin_scoped'],
      [bob, { role: 'local', scope_kind: 'team', scope_id: room }, 'role_grant_scope_not_applicable'],
      [bob, { role: 'plain', ...inRoom }, 'role_grant_scope_not_applicable'],
      [{ id: nobody }, { role: 'plain', ...inRoom }, 'role_grant_scope_not_applicable'],
      [{ id: nobody }, { role: 'closed', scope_kind: 'x', scope_id: room }, 'invalid_params'],
      [{ id: nobody }, {}, 'account_not_found'],
      [gone, {}, 'account_not_found'],
      [gone, { to_actor_id: gone.actor_id }, 'account_not_found'],
      [gone, { to_actor_id: other.actor_id }, 'role_grant_offer_actor_account_mismatch'],
      [gone, { to_actor_id: nobody }, 'role_grant_offer_actor_account_mismatch'],
      [{ id: nobody }, { to_actor_id: other.actor_id }, 'role_grant_offer_actor_account_mismatch'],
      [{ id: nobody }, { to_actor_id: nobody }, 'role_grant_offer_actor_account_mismatch'],
      [bob, { to_actor_id: nobody }, 'role_grant_offer_actor_account_mismatch'],
      [bob, { to_actor_id: other.actor_id }, 'role_grant_offer_actor_account_mismatch'],
      [empty, { to_actor_id: empty.actor_id }, 'role_grant_offer_actor_account_mismatch'],
      [empty, {}, 'actor_not_found'],
      [bob, { scope_id: room }, 'invalid_params'],
      [bob, { scope_kind: 'team' }, 'invalid_params'],
      [bob, { scope_kind: 'x', scope_id: room }, 'invalid_params'],
      [bob, { expires_at: '2020-01-01T00:00:00Z' }, 'invalid_params'],
      [bob, { role: 'A' }, 'invalid_params'],
    ] as const)
      await scenario(test, () => assign(target, more), { reason })
  })
})
