import { randomUUID } from 'node:crypto'
import { describe, expect, test as it } from 'vitest'
import { cellRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { scenario, type TestAccount } from '../../testing/index.ts'

const test = await serviceForFile({
  roles: [
    { name: 'team', grant_paths: [] },
    { name: 'r', grant_paths: [] },
  ],
})
const [ada, bob, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])

type Input = Parameters<TestAccount['client']['cell_grant_create']>[0]
const cell = (row: Parameters<typeof cellRow>[1] = {}) => cellRow(test, { created_by: ada.actor_id, ...row })
const give = (cell_id: string, principal: Input['principal'], level: Input['level'] = 'viewer', by = ada) =>
  by.client.cell_grant_create({ cell_id, level, principal })
const grants = async (cell_id: string) => (await root.client.cell_grant_list({ cell_id })).grants

describe('a new grant', () => {
  it('admits an actor, and its audit row names cell, grant, principal and the grantee, no level', async () => {
    const cell_id = await cell()
    const answer = await scenario(test, () => give(cell_id, { actor_id: bob.actor_id }, 'editor'), {
      audit: [
        {
          event_type: 'cell_grant_create',
          actor_id: ada.actor_id,
          account_id: ada.id,
          target_actor_id: bob.actor_id,
          target_account_id: bob.id,
        },
      ],
    })
    expect(answer).toEqual({
      grant: {
        id: expect.any(String),
        cell_id,
        level: 'editor',
        actor_id: bob.actor_id,
        role: null,
        scope_id: null,
        granted_by: ada.actor_id,
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
    })
    const row = await test.service.app.db.first<{ metadata: object }>(sql`
      select metadata from audit_entries() order by written desc limit 1`)
    expect(row?.metadata).toEqual({
      cell_id,
      grant_id: answer.grant.id,
      principal: { actor_id: bob.actor_id },
    })
    expect((await bob.client.cell_get({ id: cell_id })).can_edit).toBe(true)
  })

  it('admits the holders of a role, in one scope or any; the scope need not exist', async () => {
    const [cell_id, scope_id] = [await cell(), randomUUID()]
    const scoped = await scenario(test, () => give(cell_id, { role: 'team', scope_id }), {
      audit: [{ event_type: 'cell_grant_create', target_actor_id: null, target_account_id: null }],
    })
    const any = await scenario(test, () => give(cell_id, { role: 'team' }, 'editor'), {
      audit: [{ event_type: 'cell_grant_create' }],
    })
    expect(scoped.grant).toMatchObject({ role: 'team', scope_id, actor_id: null, level: 'viewer' })
    expect(any.grant).toMatchObject({ role: 'team', scope_id: null, actor_id: null, level: 'editor' })
    expect((await grants(cell_id)).map(({ id }) => id).sort()).toEqual([scoped.grant.id, any.grant.id].sort())
  })
})

describe('a repeated grant', () => {
  it('is the same row, however its principal is written', async () => {
    const cell_id = await cell()
    const first = await give(cell_id, { role: 'r' })
    for (const principal of [
      { role: 'r' },
      { role: 'r', scope_id: null },
      { kind: 'role' as const, role: 'r' },
    ])
      expect(await scenario(test, () => give(cell_id, principal))).toEqual(first)
    const second = await give(cell_id, { kind: 'actor', actor_id: bob.actor_id })
    expect(await scenario(test, () => give(cell_id, { actor_id: bob.actor_id.toUpperCase() }))).toEqual(
      second,
    )
    expect(await grants(cell_id)).toHaveLength(2)
  })

  it('of another level replaces level and granted_by, keeps id and timestamp, and applies immediately', async () => {
    const cell_id = await cell()
    const { grant } = await give(cell_id, { actor_id: bob.actor_id }, 'editor')
    const lowered = await scenario(test, () => give(cell_id, { actor_id: bob.actor_id }, 'viewer', root), {
      audit: [{ event_type: 'cell_grant_create', actor_id: root.actor_id, target_actor_id: bob.actor_id }],
    })
    expect(lowered).toEqual({ grant: { ...grant, level: 'viewer', granted_by: root.actor_id } })
    expect(await reasonOf(bob.client.cell_update({ cell_id, data: { a: 1 } }))).toBe('cell_not_found')
  })

  it('of the same level writes nothing, whoever repeats it, and leaves no audit row', async () => {
    const cell_id = await cell()
    const first = await give(cell_id, { actor_id: bob.actor_id })
    expect(await scenario(test, () => give(cell_id, { actor_id: bob.actor_id }, 'viewer', root))).toEqual(
      first,
    )
  })

  it('twenty concurrent ones make one row, and all return it', async () => {
    const cell_id = await cell()
    for (const principal of [{ actor_id: bob.actor_id }, { role: 'team' }]) {
      const answers = await scenario(
        test,
        () =>
          Promise.all(
            Array.from({ length: 20 }, (_, n) => give(cell_id, principal, 'viewer', n % 2 ? ada : root)),
          ),
        { audit: [{ event_type: 'cell_grant_create' }] },
      )
      expect(new Set(answers.map(({ grant }) => JSON.stringify(grant))).size).toBe(1)
    }
    expect(await grants(cell_id)).toHaveLength(2)
  })
})

describe('refused', () => {
  const refused = (cell_id: string, principal: Input['principal'], reason: string, by = ada) =>
    scenario(test, () => give(cell_id, principal, 'viewer', by), { reason })

  it('for whoever does not manage the cell, before the principal is checked', async () => {
    const cell_id = await cell({ visibility: 'public' })
    const editor = await test.account()
    await give(cell_id, { actor_id: editor.actor_id }, 'editor')
    const deleted = await cell({ deleted_at: '2026-01-01T00:00:00Z' })
    for (const principal of [{ role: 'unknown' }, { actor_id: ada.actor_id }, { actor_id: randomUUID() }])
      for (const [id, by] of [
        [cell_id, bob],
        [cell_id, editor],
        [deleted, ada],
        [deleted, root],
        [randomUUID(), ada],
      ] as const)
        await refused(id, principal, 'cell_not_found', by)
  })

  it('of a role that is not registered', async () => {
    await refused(await cell(), { role: 'unknown' }, 'cell_grant_unknown_role')
    await refused(await cell(), { role: 'toString', scope_id: randomUUID() }, 'cell_grant_unknown_role')
    expect(await reasonOf(give(await cell(), { role: 'keeper' }))).toBe('ok')
  })

  it('to the owner, in upper case too, by the owner or an admin', async () => {
    for (const actor_id of [ada.actor_id, ada.actor_id.toUpperCase()])
      for (const by of [ada, root])
        await refused(await cell(), { actor_id }, 'cell_grant_principal_is_owner', by)
  })

  it('to an actor that is missing, purged, soft-deleted or of a deleted account; a level change too', async () => {
    const cell_id = await cell()
    const { operations } = test.service
    await refused(cell_id, { actor_id: randomUUID() }, 'cell_grant_unknown_actor')
    await refused(cell_id, { actor_id: bob.id }, 'cell_grant_unknown_actor')
    const gone = await test.account()
    await give(cell_id, { actor_id: gone.actor_id })
    await operations.deleteAccount({ account_id: gone.id }, { via: 'test' })
    await refused(cell_id, { actor_id: gone.actor_id }, 'cell_grant_unknown_actor')
    const second = await test.actor(bob.id, 'second')
    await give(cell_id, { actor_id: second })
    await operations.removeActor({ actor_id: second }, { via: 'test' })
    await scenario(test, () => give(cell_id, { actor_id: second }, 'editor'), {
      reason: 'cell_grant_unknown_actor',
    })
    await operations.purgeAccount({ account_id: gone.id, confirm: true }, { via: 'test' })
    await refused(cell_id, { actor_id: gone.actor_id }, 'cell_grant_unknown_actor')
    // The grant of the removed actor stays.
    expect((await grants(cell_id)).map(({ actor_id }) => actor_id)).toEqual([second])
  })

  it('if the principal is invalid', async () => {
    const cell_id = await cell()
    for (const principal of [
      {},
      { actor_id: bob.actor_id, role: 'team' },
      { kind: 'role', actor_id: bob.actor_id },
      { kind: 'actor', role: 'team' },
      { role: 'team', scope_id: '' },
      { role: '' },
      { role: 'x'.repeat(129) },
      { actor_id: null },
      { actor_id: bob.actor_id, scope_id: null },
    ])
      await refused(cell_id, principal as never, 'invalid_params')
    for (const level of ['owner', '', null])
      expect(await reasonOf(give(cell_id, { role: 'team' }, level as never))).toBe('invalid_params')
  })
})

it('on a system cell only an admin may grant, to any live actor', async () => {
  const cell_id = await cell({ created_by: null })
  for (const { actor_id } of [ada, bob, root])
    expect((await give(cell_id, { actor_id }, 'viewer', root)).grant.actor_id).toBe(actor_id)
  expect(await reasonOf(give(cell_id, { actor_id: bob.actor_id }, 'editor'))).toBe('cell_not_found')
})
