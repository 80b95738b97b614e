import { describe, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { scenario } from '../testing/index.ts'

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

describe('grantRole', () => {
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
})
