import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { call, dataOf, reasonOf, rpc } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { query } from '../core/declare.ts'
import { testService } from '../testing/index.ts'

/** How registered entries change the methods. */

const room = '00000000-0000-4000-8000-0000000000aa'
const gated = query({
  doc: 'Only for teachers.',
  auth: { role: 'teacher' },
  output: z.null(),
  handler: async () => null,
})
const options = {
  roles: [
    {
      name: 'teacher',
      grant_paths: ['admin', 'system', 'friends'],
      required_credential_types: ['daemon_token'],
    },
    { name: 'sealed', grant_paths: [] },
    { name: 'local', grant_paths: ['admin'], applicable_scope_kinds: ['room'] },
    { name: 'everywhere', grant_paths: ['admin'], applicable_scope_kinds: [] },
  ],
  grant_paths: [{ name: 'friends' }],
  scope_kinds: [{ name: 'room' }, { name: 'house' }],
  actions: { gated },
}
const test = await serviceForFile(options)
const admin = await test.account({ roles: ['admin'] })
const ada = await test.account()

const ask = (method: string, params: object, { cookie } = admin, { url } = test) =>
  rpc(url, call(method, params), { cookie })
const assign = (params: object) => ask('role_grant_assign', { to_account_id: ada.id, ...params })
const grantRole = (role: string, path: string) =>
  test.service.operations.grantRole({ actor_id: ada.actor_id, role, path }, { via: 'testing' })

describe('a registered role', () => {
  it('is conferred by the paths it lists, those of the consumer included, and by no other', async () => {
    await expect(grantRole('teacher', 'friends')).resolves.toMatchObject({ created: true })
    for (const path of ['self_service', 'bootstrap', 'unknown'])
      await expect(grantRole('teacher', path)).rejects.toMatchObject({
        data: { reason: 'role_grant_path_not_allowed' },
      })
  })

  it('opens a gate to every credential, whichever types it is said to require', async () => {
    await test.roleGrant({ actor_id: ada.actor_id, role: 'teacher' })
    expect(reasonOf(await ask('gated', {}, ada))).toBe('ok')
    expect(reasonOf(await ask('gated', {}, admin))).toBe('insufficient_permissions')
  })

  it('without grant paths is conferred by none', async () => {
    expect(reasonOf(await assign({ role: 'sealed' }))).toBe('role_not_web_grantable')
    expect(reasonOf(await ask('role_grant_offer_create', { to_account_id: ada.id, role: 'sealed' }))).toBe(
      'role_grant_offer_role_not_grantable',
    )
    for (const path of ['admin', 'system', 'friends'])
      await expect(grantRole('sealed', path)).rejects.toMatchObject({
        data: { reason: 'role_grant_path_not_allowed' },
      })
  })

  it('is assigned at the kinds of scope that apply to it, and always globally', async () => {
    const scope = (scope_kind: string) => ({ scope_kind, scope_id: room })
    expect(reasonOf(await assign({ role: 'local', ...scope('room') }))).toBe('ok')
    expect(reasonOf(await assign({ role: 'local', ...scope('house') }))).toBe(
      'role_grant_scope_not_applicable',
    )
    expect(reasonOf(await assign({ role: 'everywhere', ...scope('room') }))).toBe(
      'role_grant_scope_not_applicable',
    )
    expect(reasonOf(await assign({ role: 'admin', ...scope('room') }))).toBe('role_grant_builtin_scoped')
    for (const role of ['local', 'everywhere']) expect(reasonOf(await assign({ role }))).toBe('ok')
  })
})

describe.each(['role_grant_assign', 'role_grant_offer_create'])('the scope given to %s', (method) => {
  it.each<[what: string, scope: object, path: string, code: string]>([
    ['a kind alone', { scope_kind: 'room' }, 'scope_id', 'invalid_type'],
    ['a kind and null', { scope_kind: 'room', scope_id: null }, 'scope_id', 'invalid_type'],
    ['an id alone', { scope_id: room }, 'scope_kind', 'invalid_type'],
    ['an unregistered kind', { scope_kind: 'planet', scope_id: room }, 'scope_kind', 'unknown_scope_kind'],
    [
      'a name of every object',
      { scope_kind: 'constructor', scope_id: room },
      'scope_kind',
      'unknown_scope_kind',
    ],
    ['65 letters', { scope_kind: 'a'.repeat(65), scope_id: room }, 'scope_kind', 'too_big'],
    ['U+0000', { scope_kind: 'ro\0om', scope_id: room }, 'scope_kind', 'invalid_format'],
  ])('%s is refused as bad input', async (_what, scope, path, code) => {
    const reply = await ask(method, { to_account_id: ada.id, role: 'local', ...scope })
    expect(reply.status).toBe(400)
    expect(dataOf(reply)?.issues).toMatchObject([{ path: [path], code }])
  })
})

it('a role that is no longer registered opens nothing, stays listed, and is ended by the library alone', async () => {
  const bob = await test.account()
  const { role_grant_id } = await test.roleGrant({ actor_id: bob.actor_id, role: 'teacher' })
  const later = await testService({ database_url: test.databaseUrl })
  const { actor_id } = bob
  const { accounts } = await admin.client.admin_account_list({ limit: 200 })
  expect(accounts.flatMap(({ role_grants }) => role_grants.map(({ id }) => id))).toContain(role_grant_id)
  const revoke = { actor_id, role_grant_id }
  expect(reasonOf(await ask('role_grant_revoke', revoke, admin, later))).toBe('role_not_web_grantable')
  const closed = await testService({
    database_url: test.databaseUrl,
    roles: [{ name: 'other', grant_paths: [] }],
    actions: {
      gated: query({
        doc: 'Only for others.',
        auth: { role: 'other' },
        output: z.null(),
        handler: async () => null,
      }),
    },
  })
  expect(reasonOf(await ask('gated', {}, bob, closed))).toBe('insufficient_permissions')
  await later.service.operations.revokeRole(revoke, { via: 'testing' })
  expect(reasonOf(await ask('gated', {}, bob))).toBe('insufficient_permissions')
  await Promise.all([later.close(), closed.close()])
})

it('a gate of an action that names an unregistered role or credential type stops the start', async () => {
  await expect(testService({ actions: { gated } })).rejects.toMatchObject({
    reason: 'invalid_action',
    message: 'Action gated: role "teacher" is not registered; declare it in roles.',
  })
  const byPasskey = { ...gated, auth: { ...gated.auth, roles: ['admin'], credential_types: ['passkey'] } }
  await expect(testService({ actions: { byPasskey } })).rejects.toThrow(/credential type "passkey"/)
  const registered = await testService({
    actions: { byPasskey },
    credential_types: [{ name: 'passkey' }],
    database_url: test.databaseUrl,
  })
  expect(reasonOf(await ask('byPasskey', {}, admin, registered))).toBe('credential_type_required')
  await registered.close()
})
