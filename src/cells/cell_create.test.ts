import { describe, expect, test as it } from 'vitest'
import { cellRow, endRole } from '../../test/helpers/cell-rows.ts'
import { reasonOf, tally } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { type CellData, CellDataIssues } from '../registry/hooks.ts'
import { scenario, type TestAccount, testService } from '../testing/index.ts'

/** Runs inside the call, before the insert, if the data requests it. */
let meanwhile: () => Promise<unknown> = async () => {}

const test = await serviceForFile({
  hooks: {
    async validateData(_kind: string | null, data: Record<string, unknown>) {
      if (data.refuse) throw new CellDataIssues([])
      if (data.meanwhile) await meanwhile()
      return data
    },
    authorizeCreate: (_caller: unknown, { data }: { data: { deny?: boolean } }) => !data.deny,
  },
})
const [ada, root] = await Promise.all([test.account(), test.account({ roles: ['admin'] })])

const create = (account: TestAccount, input: object) =>
  account.client.cell_create({ data: {}, ...input } as { data: CellData })

it('returns the whole cell, owned by the acting actor, with one audit row', async () => {
  const made = await scenario(test, () => create(ada, { data: { label: 'x' } }), {
    audit: [{ event_type: 'cell_create', actor_id: ada.actor_id, account_id: ada.id, target_actor_id: null }],
  })
  const at = made.cell.created_at
  expect(at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(made).toEqual({
    cell: {
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      kind: null,
      visibility: 'private',
      path: null,
      data: { label: 'x' },
      version: 1,
      created_by: ada.actor_id,
      updated_by: null,
      created_at: at,
      updated_at: null,
    },
  })
  expect((await ada.client.cell_get({ id: made.cell.id })).cell).toEqual(made.cell)
})

it('stores everything that can be given', async () => {
  const input = { data: { a: [1] }, kind: 'Note ', visibility: 'public', path: 'Some/Päth ☃' }
  expect((await create(root, input)).cell).toMatchObject(input)
})

it('with several actors, the acting one becomes the owner', async () => {
  const account = await test.account()
  const second = await test.actor(account.id, 'second')
  expect(await reasonOf(create(account, {}))).toBe('actor_required')
  expect((await create(account, { acting: second.toUpperCase() })).cell.created_by).toBe(second)
})

it('needs a credential', async () => {
  await scenario(test, () => test.client().cell_create({ data: {} }), { reason: 'authentication_required' })
})

describe('input', () => {
  it.each<[string, object, string]>([
    ['a kind of 128 characters', { kind: 'x'.repeat(128) }, 'ok'],
    ['a kind of 129 characters', { kind: 'x'.repeat(129) }, 'invalid_params'],
    ['a kind of 128 emoji', { kind: '😀'.repeat(128) }, 'ok'],
    ['a kind of 129 emoji', { kind: '😀'.repeat(129) }, 'invalid_params'],
    ['a kind of blanks', { kind: '  ' }, 'ok'],
    ['a kind of null', { kind: null }, 'ok'],
    ['an empty kind', { kind: '' }, 'cell_kind_empty'],
    ['a kind that is no text', { kind: 1 }, 'invalid_params'],
    ['a kind with a NUL', { kind: '\0' }, 'invalid_params'],
    ['a visibility of null', { visibility: null }, 'invalid_params'],
    ['a visibility in upper case', { visibility: 'PUBLIC' }, 'invalid_params'],
    ['a path of null', { path: null }, 'ok'],
    ['a path of 256 emoji', { path: '😀'.repeat(256) }, 'ok'],
    ['a path of 257 characters', { path: 'x'.repeat(257) }, 'invalid_params'],
    ['an empty path', { path: '' }, 'invalid_params'],
    ['a path with a lone surrogate', { path: '\udfff' }, 'invalid_params'],
    ['no data', { data: undefined }, 'invalid_params'],
    ['an id', { id: '11111111-1111-4111-8111-111111111111' }, 'invalid_params'],
    ['an owner', { created_by: null }, 'invalid_params'],
    ['a version', { version: 1 }, 'invalid_params'],
    ['acting of null', { acting: null }, 'invalid_params'],
  ])('%s', async (_what, input, reason) => {
    expect(await reasonOf(create(root, input))).toBe(reason)
  })
})

describe('with two errors, the first one is reported', () => {
  it.each<[string, object, string]>([
    ['a schema issue before the path', { path: 'p', data: 1 }, 'invalid_params'],
    ['the path before the kind in data', { path: 'p', data: { kind: 1 } }, 'cell_path_admin_only'],
    ['the kind in data before the empty kind', { kind: '', data: { kind: 1 } }, 'cell_kind_in_data'],
    ['the empty kind before the data hook', { kind: '', data: { refuse: 1 } }, 'cell_kind_empty'],
    ['the data hook before the create hook', { data: { refuse: 1, deny: 1 } }, 'cell_data_invalid'],
  ])('%s', async (_what, input, reason) => {
    await scenario(test, () => create(ada, input), { reason })
  })

  it('the create hook before the taken path', async () => {
    await create(root, { path: 'denied' })
    await scenario(test, () => create(root, { path: 'denied', data: { deny: 1 } }), {
      reason: 'cell_create_forbidden',
    })
  })
})

describe('a path', () => {
  it('is for holders of an active global admin role, as the acting actor', async () => {
    const [scoped, expired, ended, mixed] = await Promise.all([
      test.account(),
      test.account(),
      test.account({ roles: ['admin'] }),
      test.account({ roles: ['admin'] }),
    ])
    const scope_id = '11111111-1111-4111-8111-111111111111'
    await test.roleGrant({ actor_id: scoped.actor_id, role: 'admin', scope_kind: 'team', scope_id })
    await test.roleGrant({ actor_id: expired.actor_id, role: 'admin', expires_at: '2020-01-01T00:00:00Z' })
    await endRole(test, ended.actor_id, 'admin')
    const sibling = await test.actor(mixed.id, 'sibling')
    const reason = 'cell_path_admin_only'
    for (const account of [ada, scoped, expired, ended])
      await scenario(test, () => create(account, { path: 'x' }), { reason })
    await scenario(test, () => create(mixed, { path: 'x', acting: sibling }), { reason })
    await create(mixed, { path: 'x', acting: mixed.actor_id })
  })

  it('needs the role in the insert too: an admin that loses it meanwhile writes nothing', async () => {
    const former = await test.account({ roles: ['admin'] })
    meanwhile = () => endRole(test, former.actor_id, 'admin')
    await scenario(test, () => create(former, { path: 'lost', data: { meanwhile: 1 } }), {
      reason: 'cell_path_admin_only',
    })
    expect(await reasonOf(root.client.cell_get({ path: 'lost' }))).toBe('cell_not_found')
    // Without a path nothing depends on the role.
    await create(former, { data: { meanwhile: 1 } })
  })

  it('belongs to one live cell: a deleted one frees it, a hidden one does not', async () => {
    const [first, other] = [{ path: 'one' }, { path: 'One' }]
    const { cell } = await create(root, first)
    await scenario(test, () => create(root, first), { reason: 'cell_path_taken' })
    await create(root, other)
    await root.client.cell_delete({ cell_id: cell.id })
    await create(root, first)
    await cellRow(test, { path: 'old', deleted_at: '2026-01-01T00:00:00Z' })
    await create(root, { path: 'old' })
  })

  it('goes to one of many concurrent calls', async () => {
    const calls = Array.from({ length: 10 }, () => create(root, { path: 'raced' }))
    expect(await tally(calls)).toEqual({ ok: 1, cell_path_taken: 9 })
  })
})

it('an actor that is purged during the call gets account_vanished, and nothing is written', async () => {
  const gone = await test.account()
  meanwhile = () => test.service.app.db.run(sql`delete from account where id = ${gone.id}`)
  await scenario(test, () => create(gone, { data: { meanwhile: 1, label: 'purged' } }), {
    reason: 'account_vanished',
  })
  const { cells } = await root.client.cell_list()
  expect(cells.filter(({ data }) => data.label === 'purged')).toEqual([])
})

it('the budget is per account, and refused input does not touch it', async () => {
  const small = await testService({ limit_cell_create: '3/900' })
  const [one, two] = await Promise.all([small.account(), small.account()])
  const sent = [{ data: 1 }, {}, { kind: '' }, {}, {}, { data: 1 }]
  const reasons: string[] = []
  for (const input of sent) reasons.push(await reasonOf(create(one, input)))
  expect(reasons).toEqual(['invalid_params', 'ok', 'cell_kind_empty', 'ok', 'rate_limited', 'invalid_params'])
  expect(await reasonOf(create(two, {}))).toBe('ok')
  await small.close()
})
