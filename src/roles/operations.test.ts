import { describe, expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const roles = [
  { name: 'teacher', grant_paths: ['admin', 'system'] },
  { name: 'local', grant_paths: ['admin'], applicable_scope_kinds: ['classroom'] },
  { name: 'closed', grant_paths: [] },
]
const scope_kinds = [{ name: 'classroom' }, { name: 'team' }]
const room = '22222222-2222-2222-2222-222222222222'
const nobody = '11111111-1111-1111-1111-111111111111'
const by = { via: 'cli' }

const test = await serviceForFile({ roles, scope_kinds })
const ops = () => test.service.operations
const db = () => test.service.app.db
const target = (one: TestAccount) => ({ target_account_id: one.id, target_actor_id: one.actor_id })

describe('grantRole', () => {
  it('confers, then keeps the id and only ever prolongs', async () => {
    const ada = await test.account()
    const grant = (expires_at: string | null) =>
      ops().grantRole({ actor_id: ada.actor_id, role: 'teacher', path: 'admin', expires_at }, by)
    const soon = new Date(Date.now() + 86_400_000).toISOString()
    const row = (role_grant_id: string, expires_at: string | null, extended?: true) => ({
      event_type: 'role_grant_create',
      actor_id: null,
      account_id: null,
      ...target(ada),
      metadata: {
        role: 'teacher',
        role_grant_id,
        scope_kind: null,
        scope_id: null,
        expires_at,
        source: 'library',
        path: 'admin',
        ...(extended && { extended }),
        via: 'cli',
      },
    })
    const first = await grant(soon)
    expect(first).toMatchObject({ created: true, expires_at: soon })
    expect(await scenario(test, () => grant(soon))).toEqual({ ...first, created: false })
    expect(
      await scenario(test, () => grant(null), { audit: [row(first.role_grant_id, null, true)] }),
    ).toEqual({ ...first, created: false, expires_at: null })
    expect(await scenario(test, () => grant(soon))).toMatchObject({ created: false, expires_at: null })
    const { role_grants } = await ops().findAccount({ ref: ada.id })
    expect(role_grants).toMatchObject([{ id: first.role_grant_id, granted_by: null, expires_at: null }])
  })

  it('makes a new grant where the old one expired, at each scope its own', async () => {
    const ada = await test.account()
    const grant = () =>
      ops().grantRole(
        { actor_id: ada.actor_id, role: 'local', path: 'admin', scope_kind: 'classroom', scope_id: room },
        by,
      )
    const first = await grant()
    await db().run(
      sql`update role_grant set expires_at = date_trunc('milliseconds', now()) where id = ${first.role_grant_id}::uuid`,
    )
    const second = await grant()
    expect(second).toMatchObject({ created: true })
    expect(second.role_grant_id).not.toBe(first.role_grant_id)
    const global = await ops().grantRole({ actor_id: ada.actor_id, role: 'local', path: 'admin' }, by)
    expect(global.created).toBe(true)
    expect((await ops().findAccount({ ref: ada.id })).role_grants).toHaveLength(2)
  })

  it.each([
    ['keeper, whatever the path', { role: 'keeper', path: 'bootstrap' }, 'role_grant_path_not_allowed'],
    ['a path that the role does not list', { role: 'local', path: 'system' }, 'role_grant_path_not_allowed'],
    ['a role without any path', { role: 'closed', path: 'admin' }, 'role_grant_path_not_allowed'],
    ['an unregistered role', { role: 'nothing', path: 'admin' }, 'role_grant_path_not_allowed'],
    ['a role that is no name', { role: 'A', path: 'admin' }, 'invalid_params'],
    [
      'an expiry in the past',
      { role: 'teacher', path: 'admin', expires_at: '2020-01-01T00:00:00Z' },
      'invalid_params',
    ],
    ['a scope id alone', { role: 'teacher', path: 'admin', scope_id: room }, 'invalid_params'],
    ['a scope kind alone', { role: 'teacher', path: 'admin', scope_kind: 'team' }, 'invalid_params'],
    [
      'an unregistered kind',
      { role: 'teacher', path: 'admin', scope_kind: 'x', scope_id: room },
      'invalid_params',
    ],
    [
      'admin at a scope',
      { role: 'admin', path: 'admin', scope_kind: 'team', scope_id: room },
      'role_grant_builtin_scoped',
    ],
    [
      'a kind that the role is not for',
      { role: 'local', path: 'admin', scope_kind: 'team', scope_id: room },
      'role_grant_scope_not_applicable',
    ],
  ])('refuses %s', async (_what, input, reason) => {
    const { actor_id } = await test.account()
    await scenario(test, () => ops().grantRole({ actor_id, ...input }, by), { reason })
  })

  it('refuses an actor that is unknown, removed, or of a deleted account', async () => {
    const ada = await test.account()
    const removed = await test.actor(ada.id, 'second')
    await ops().removeActor({ actor_id: removed }, by)
    const gone = await test.account()
    await ops().deleteAccount({ account_id: gone.id }, by)
    for (const actor_id of [nobody, removed, gone.actor_id])
      await scenario(test, () => ops().grantRole({ actor_id, role: 'admin', path: 'admin' }, by), {
        reason: 'actor_not_found',
      })
  })

  it('parallel calls make one grant', async () => {
    const { actor_id } = await test.account()
    const done = await Promise.all(
      Array.from({ length: 8 }, () => ops().grantRole({ actor_id, role: 'teacher', path: 'system' }, by)),
    )
    expect(new Set(done.map(({ role_grant_id }) => role_grant_id)).size).toBe(1)
    expect(done.filter(({ created }) => created)).toHaveLength(1)
  })
})

describe('revokeRole', () => {
  const revoked = (one: TestAccount, role_grant_id: string, role = 'teacher') => ({
    event_type: 'role_grant_revoke',
    actor_id: null,
    account_id: null,
    ...target(one),
    metadata: { role, role_grant_id, scope_kind: null, scope_id: null, cause: 'library', via: 'cli' },
  })

  const told = (one: TestAccount, role_grant_id: string, more: object = {}) => ({
    account_id: one.id,
    method: 'role_grant_revoke' as const,
    params: { role_grant_id, role: 'teacher', scope_id: null, ...more },
  })

  it('ends the grant once', async () => {
    const ada = await test.account()
    const { role_grant_id } = await test.roleGrant({ actor_id: ada.actor_id, role: 'teacher' })
    const revoke = () => ops().revokeRole({ actor_id: ada.actor_id, role_grant_id, reason: 'moved' }, by)
    await scenario(test, revoke, {
      audit: [revoked(ada, role_grant_id)],
      notify: [told(ada, role_grant_id, { reason: 'moved' })],
    })
    const stored = await db().first(sql`
      select revoked_by, revoked_reason, revoked_at is not null as dated from role_grant
      where id = ${role_grant_id}::uuid`)
    expect(stored).toEqual({ revoked_by: null, revoked_reason: 'moved', dated: true })
    await scenario(test, revoke, { reason: 'role_grant_not_found' })
    expect((await ops().findAccount({ ref: ada.id })).role_grants).toEqual([])
  })

  it('finds nothing under another actor, and no expired grant', async () => {
    const [ada, bob] = await Promise.all([test.account(), test.account()])
    const { role_grant_id } = await test.roleGrant({ actor_id: ada.actor_id, role: 'teacher' })
    for (const actor_id of [bob.actor_id, nobody])
      await scenario(test, () => ops().revokeRole({ actor_id, role_grant_id }, by), {
        reason: 'role_grant_not_found',
      })
    await db().run(
      sql`update role_grant set expires_at = date_trunc('milliseconds', now()) where id = ${role_grant_id}::uuid`,
    )
    await scenario(test, () => ops().revokeRole({ actor_id: ada.actor_id, role_grant_id }, by), {
      reason: 'role_grant_not_found',
    })
  })

  it('ends what a deleted account still holds', async () => {
    const ada = await test.account()
    const { role_grant_id } = await test.roleGrant({ actor_id: ada.actor_id, role: 'teacher' })
    await ops().deleteAccount({ account_id: ada.id }, by)
    await scenario(test, () => ops().revokeRole({ actor_id: ada.actor_id, role_grant_id }, by), {
      audit: [revoked(ada, role_grant_id)],
      notify: [told(ada, role_grant_id)],
    })
  })

  it('refuses the keeper and the last admin, each with a row', async () => {
    const ada = await test.account()
    const refused = (reason: string, role: string, role_grant_id: string) => ({
      reason,
      audit: [
        {
          event_type: 'role_grant_revoke',
          outcome: 'failure' as const,
          ...target(ada),
          metadata: { reason, role, role_grant_id, via: 'cli' },
        },
      ],
    })
    const keeper = await test.roleGrant({ actor_id: ada.actor_id, role: 'keeper' })
    const admin = await test.roleGrant({ actor_id: ada.actor_id, role: 'admin' })
    const revoke = (role_grant_id: string) => () =>
      ops().revokeRole({ actor_id: ada.actor_id, role_grant_id }, by)
    await scenario(
      test,
      revoke(keeper.role_grant_id),
      refused('role_grant_path_not_allowed', 'keeper', keeper.role_grant_id),
    )
    const dormant = await test.account({ roles: ['admin'] })
    await ops().deleteAccount({ account_id: dormant.id }, by)
    await scenario(
      test,
      revoke(admin.role_grant_id),
      refused('cannot_revoke_last_admin', 'admin', admin.role_grant_id),
    )
    const bob = await test.account({ roles: ['admin'] })
    await scenario(test, revoke(admin.role_grant_id), {
      audit: [revoked(ada, admin.role_grant_id, 'admin')],
      notify: [told(ada, admin.role_grant_id, { role: 'admin' })],
    })
    const [last] = (await ops().findAccount({ ref: bob.id })).role_grants
    await scenario(
      test,
      () => ops().revokeRole({ actor_id: bob.actor_id, role_grant_id: last?.id ?? '' }, by),
      {
        reason: 'cannot_revoke_last_admin',
        audit: [{ event_type: 'role_grant_revoke', outcome: 'failure' }],
      },
    )
  })

  it('of two parallel revokes of the last two admins one is refused', async () => {
    for (let round = 0; round < 10; round++) {
      await db().run(
        sql`update role_grant set revoked_at = now() where revoked_at is null and role = 'admin'`,
      )
      const pair = await Promise.all([test.account(), test.account()])
      const grants = await Promise.all(
        pair.map(async ({ actor_id }) => ({
          actor_id,
          role_grant_id: (await test.roleGrant({ actor_id, role: 'admin' })).role_grant_id,
        })),
      )
      const done = await Promise.allSettled(grants.map((grant) => ops().revokeRole(grant, by)))
      const refused = done.filter((one) => one.status === 'rejected')
      expect(refused.map(({ reason }) => reason.data.reason)).toEqual(['cannot_revoke_last_admin'])
    }
  })
})
