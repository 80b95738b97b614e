import { expect, it } from 'vitest'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { scenario } from '../testing/index.ts'

const test = await serviceForFile({
  roles: [
    {
      name: 'editor',
      description: 'May edit what is shared.',
      grant_paths: ['admin', 'self_service'],
      required_credential_types: ['session'],
      applicable_scope_kinds: ['team'],
    },
    { name: 'robot', grant_paths: [] },
  ],
  scope_kinds: [{ name: 'team', description: 'People who work together.' }, { name: 'room' }],
  self_service_roles: ['editor'],
  max_sessions: 'off',
  max_tokens: 7,
})

it('shows any signed-in person what roles there are, where they can be held, and how much one may have', async () => {
  const { client } = await test.account()
  const { roles, ...rest } = await scenario(test, () => client.registry_list())
  const builtin = { description: expect.stringMatching(/\.$/), scope_kinds: [], self_service: false }
  expect(roles).toEqual([
    { ...builtin, name: 'keeper', grant_paths: ['bootstrap'], required_credential_types: ['daemon_token'] },
    { ...builtin, name: 'admin', grant_paths: ['admin', 'bootstrap'], required_credential_types: [] },
    {
      name: 'editor',
      description: 'May edit what is shared.',
      grant_paths: ['admin', 'self_service'],
      required_credential_types: ['session'],
      scope_kinds: ['team'],
      self_service: true,
    },
    {
      name: 'robot',
      description: null,
      grant_paths: [],
      required_credential_types: [],
      scope_kinds: ['team', 'room'],
      self_service: false,
    },
  ])
  expect(rest).toEqual({
    scope_kinds: [
      { name: 'team', description: 'People who work together.' },
      { name: 'room', description: null },
    ],
    caps: {
      max_sessions: null,
      max_tokens: 7,
      max_actors: 50,
      max_cell_edges: 10_000,
      max_account_cells: 1_000_000,
      max_account_bytes: 10_737_418_240,
    },
  })
  expect(await reasonOf(test.client().registry_list())).toBe('authentication_required')
})
