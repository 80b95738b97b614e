import { beforeEach, describe, expect, it } from 'vitest'
import {
  expire,
  grantsOf,
  heard,
  holder,
  inRoom,
  lapse,
  registries,
  room,
} from '../../test/helpers/offers.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario } from '../testing/index.ts'

const test = await serviceForFile({ ...registries, limit_role_write: 'off' })
const admin = await test.account({ roles: ['admin'] })
beforeEach(() => test.service.app.db.run(sql`delete from role_scope_destroyed`))

const by = { via: 'cli' }
const ops = () => test.service.operations
const destroy = (scope: object = inRoom, operator: object = by) =>
  ops().destroyScope({ ...inRoom, ...scope }, { ...by, ...operator })
const team = { scope_kind: 'team', scope_id: room }
const nothing = { revoked: [], superseded_offers: [] }
const byId = <T extends { id?: string; offer_id?: string; role_grant_id?: string }>(a: T, b: T) =>
  (a.offer_id ?? a.role_grant_id ?? '') < (b.offer_id ?? b.role_grant_id ?? '') ? -1 : 1

describe('destroyScope', () => {
  it('ends every grant and every pending offer at the scope, and nothing else, each with its row', async () => {
    const held = [await holder(test, 'teacher', inRoom), await holder(test, 'local', inRoom)].sort(byId)
    const [ada, bob] = [await holder(test), await test.account()]
    await test.roleGrant({ actor_id: bob.actor_id, role: 'teacher', ...team })
    const expired = await holder(test, 'teacher', inRoom)
    await expire(test, expired.role_grant_id)
    const offer = async (more: object) =>
      (await ada.client.role_grant_offer_create({ to_account_id: bob.id, role: 'teacher', ...more })).offer
    const ends = [await offer(inRoom), await offer({ ...inRoom, to_actor_id: bob.actor_id })].sort(byId)
    const stay = [await offer({}), await offer(team)]
    const eve = await test.account()
    const lapsed = (
      await ada.client.role_grant_offer_create({ to_account_id: eve.id, role: 'teacher', ...inRoom })
    ).offer
    await lapse(test, lapsed.offer_id)
    const acting = { actor_id: admin.actor_id, account_id: admin.id, ip: '192.0.2.1' }
    const told = (role_grant_id: string, role: string) => ({
      role_grant_id,
      role,
      scope_id: room,
      reason: 'gone',
    })
    const roleOf = new Map<string, string>()
    for (const { actor_id, role_grant_id } of held)
      roleOf.set(role_grant_id, (await grantsOf(test, actor_id))[0]?.role as string)
    let done: Awaited<ReturnType<typeof destroy>> = nothing
    const sent = await heard(test, async () => {
      done = await scenario(test, () => destroy({ reason: 'gone' }, acting), {
        audit: [
          ...held.map(({ id, actor_id, role_grant_id }) => ({
            event_type: 'role_grant_revoke',
            ...acting,
            target_actor_id: actor_id,
            target_account_id: id,
            metadata: {
              role: roleOf.get(role_grant_id),
              role_grant_id,
              ...inRoom,
              cause: 'scope_destroyed',
              via: 'cli',
            },
          })),
          ...ends.map(({ offer_id, to_actor_id }) => ({
            event_type: 'role_grant_offer_supersede',
            ...acting,
            target_account_id: bob.id,
            target_actor_id: to_actor_id,
            metadata: {
              offer_id,
              role: 'teacher',
              ...inRoom,
              reason: 'scope_destroyed',
              cause_id: room,
              via: 'cli',
            },
          })),
        ],
        notify: [
          ...held.map(({ id, role_grant_id }) => ({
            account_id: id,
            method: 'role_grant_revoke' as const,
            params: told(role_grant_id, roleOf.get(role_grant_id) as string),
          })),
          ...ends.map(() => ({ account_id: ada.id, method: 'role_grant_offer_supersede' as const })),
        ],
      })
    })
    expect(done.revoked).toEqual(
      held.map(({ id, actor_id, role_grant_id }) => ({
        role_grant_id,
        role: roleOf.get(role_grant_id),
        ...inRoom,
        actor_id,
        account_id: id,
      })),
    )
    expect(done.superseded_offers).toEqual(
      ends.map((offer) => ({ ...offer, superseded_at: expect.any(String) })),
    )
    expect(sent.slice(2).map(({ params }) => params)).toEqual(
      done.superseded_offers.map((offer) => ({ offer, reason: 'scope_destroyed', cause_id: room })),
    )
    const left = (await bob.client.role_grant_offer_list()).offers
    expect(left.sort(byId)).toEqual(stay.sort(byId))
    expect(await grantsOf(test, bob.actor_id)).toMatchObject([{ is_active: true }])
    expect(await scenario(test, () => destroy())).toEqual(nothing)
  })

  it('of a scope where nothing is leaves no row, and closes it all the same', async () => {
    const [ada, bob] = [await holder(test), await test.account()]
    expect(await scenario(test, () => destroy())).toEqual(nothing)
    const reason = 'role_grant_scope_destroyed'
    const grant = { actor_id: bob.actor_id, role: 'teacher', path: 'system' }
    const to = { to_account_id: bob.id, role: 'teacher' }
    const calls = (scope: object) => [
      () => admin.client.role_grant_assign({ ...to, ...scope }),
      () => ada.client.role_grant_offer_create({ ...to, ...scope }),
      () => ops().grantRole({ ...grant, ...scope }, by),
    ]
    for (const call of calls(inRoom)) await scenario<unknown>(test, call, { reason })
    for (const call of calls(team)) await call()
    for (const call of calls({})) await call()
  })

  it('is checked last: what else is wrong is said first', async () => {
    const [ada, bob] = [await holder(test), await test.account()]
    await destroy()
    await bob.client.account_delete()
    const to = { to_account_id: bob.id, role: 'teacher', ...inRoom }
    for (const call of [
      () => admin.client.role_grant_assign(to),
      () => ada.client.role_grant_offer_create(to),
    ])
      await scenario<unknown>(test, call, { reason: 'account_not_found' })
    const grant = { actor_id: bob.actor_id, role: 'teacher', path: 'system', ...inRoom }
    await scenario(test, () => ops().grantRole(grant, by), { reason: 'actor_not_found' })
  })

  it('ends what removed actors and deleted accounts hold', async () => {
    const [ada, bob] = [await holder(test, 'teacher', inRoom), await holder(test, 'teacher', inRoom)]
    await ada.client.account_delete()
    await test.service.app.db.run(sql`update actor set deleted_at = now() where id = ${bob.actor_id}::uuid`)
    expect((await destroy()).revoked).toHaveLength(2)
  })

  it('ends a thousand grants at once', async () => {
    await test.service.app.db.run(sql`
      with accounts as (
        insert into account (username, password_hash) select 'crowd' || n, '' from generate_series(1, 1000) n
        returning id, username
      ), actors as (
        insert into actor (account_id, name, name_key) select id, username, username from accounts returning id
      )
      insert into role_grant (actor_id, role, scope_kind, scope_id)
      select id, 'teacher', 'classroom', ${room}::uuid from actors`)
    const { revoked } = await destroy()
    expect(revoked).toHaveLength(1000)
    expect(revoked.map(({ role_grant_id }) => role_grant_id)).toEqual(
      revoked.map(({ role_grant_id }) => role_grant_id).sort(),
    )
  })

  it('refuses what is no scope', async () => {
    for (const scope of [
      { scope_kind: 'x' },
      { scope_kind: 'A' },
      { scope_kind: null },
      { scope_id: null },
      { scope_id: 'x' },
    ])
      await expect(destroy(scope)).rejects.toMatchObject({ data: { reason: 'invalid_params' } })
  })
})

describe('within a transaction of the consumer', () => {
  const options = { event: 'role_grant_revoke', via: 'cli' } as const
  it('waits for its commit', async () => {
    const ada = await holder(test, 'teacher', inRoom)
    await scenario(
      test,
      () =>
        test.service.transaction(options, async (within) => {
          const sent = await heard(test, () => destroy(inRoom, { within }))
          expect(sent).toEqual([])
          expect(await grantsOf(test, ada.actor_id)).toMatchObject([{ is_active: true }])
        }),
      {
        audit: [{ event_type: 'role_grant_revoke', target_actor_id: ada.actor_id }],
        notify: [{ account_id: ada.id, method: 'role_grant_revoke' }],
      },
    )
    expect(await grantsOf(test, ada.actor_id)).toMatchObject([{ is_active: false }])
  })

  it('vanishes with its rollback: grants and offers live on, no notification, no success row', async () => {
    const [ada, bob] = [await holder(test, 'teacher', inRoom), await test.account()]
    await ada.client.role_grant_offer_create({ to_account_id: bob.id, role: 'teacher', ...inRoom })
    const undone = () =>
      test.service.transaction(options, async (within) => {
        expect((await destroy(inRoom, { within })).revoked).toHaveLength(1)
        throw Object.assign(new Error('undo'), { reason: 'undo' })
      })
    await scenario(test, undone, {
      reason: 'undo',
      audit: [
        { event_type: 'role_grant_revoke', outcome: 'failure' },
        { event_type: 'role_grant_offer_supersede', outcome: 'failure' },
      ],
    })
    expect(await grantsOf(test, ada.actor_id)).toMatchObject([{ is_active: true }])
    expect((await bob.client.role_grant_offer_list()).offers).toHaveLength(1)
    await admin.client.role_grant_assign({ to_account_id: bob.id, role: 'teacher', ...inRoom })
  })

  it('joins grants and revocations, whose refusals leave a row of their own event', async () => {
    const ada = await holder(test)
    const { actor_id, role_grant_id } = ada
    await scenario(
      test,
      () =>
        test.service.transaction({ ...options, event: 'account_update' }, async (within) => {
          await ops().revokeRole({ actor_id, role_grant_id }, { ...by, within })
          await ops().grantRole({ actor_id, role: 'teacher', path: 'system', ...team }, { ...by, within })
          expect(await ops().revokeRoleEverywhere({ actor_id, role: 'teacher' }, { ...by, within })).toEqual({
            revoked: [expect.objectContaining(team)],
          })
        }),
      {
        audit: [
          { event_type: 'role_grant_revoke' },
          { event_type: 'role_grant_create' },
          { event_type: 'role_grant_revoke' },
        ],
        notify: [{ method: 'role_grant_revoke' }, { method: 'role_grant_revoke' }],
      },
    )
    const keeper = await holder(test, 'keeper')
    const refused = () =>
      test.service.transaction({ ...options, event: 'account_update' }, (within) =>
        ops().revokeRole(
          { actor_id: keeper.actor_id, role_grant_id: keeper.role_grant_id },
          { ...by, within },
        ),
      )
    await scenario(test, refused, {
      reason: 'role_grant_path_not_allowed',
      audit: [{ event_type: 'role_grant_revoke', outcome: 'failure', target_actor_id: keeper.actor_id }],
    })
  })
})
