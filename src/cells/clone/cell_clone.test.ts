import { randomUUID } from 'node:crypto'
import { describe, expect, test as it } from 'vitest'
import { graph, seen } from '../../../test/helpers/cell-graphs.ts'
import { cellRow, fieldRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { scenario, type TestAccount, testService } from '../../testing/index.ts'

const test = await serviceForFile()
const [ada, bob, root] = await Promise.all([
  test.account({ roles: ['team'] }),
  test.account(),
  test.account({ roles: ['admin'] }),
])

type Input = Parameters<TestAccount['client']['cell_clone']>[0]
const clone = (source_id: string | undefined, more: Partial<Input> = {}, by = ada) =>
  by.client.cell_clone({ source_id: source_id as string, ...more })
const deep = { deep: true }

describe('the new root', () => {
  it('has kind, visibility and data of the source; it is the caller’s, without path, grants and history', async () => {
    const source = await cellRow(test, {
      kind: 'note',
      visibility: 'public',
      path: 'original',
      data: { label: 'x', n: 1.5 },
      created_by: bob.actor_id,
      updated_at: '2026-01-01T00:00:00Z',
      created_at: '2025-01-01T00:00:00Z',
    })
    await test.cellGrant(source, 'editor', { role: 'team', scope_id: null })
    const answer = await scenario(test, () => clone(source), {
      audit: [
        {
          event_type: 'cell_clone',
          actor_id: ada.actor_id,
          account_id: ada.id,
          target_actor_id: null,
          target_account_id: null,
        },
      ],
    })
    expect(answer).toEqual({
      cloned_count: 1,
      cell: {
        id: expect.not.stringContaining(source),
        kind: 'note',
        visibility: 'public',
        path: null,
        data: { label: 'x', n: 1.5 },
        version: 1,
        created_by: ada.actor_id,
        updated_by: null,
        created_at: expect.any(String),
        updated_at: null,
      },
    })
    expect((await ada.client.cell_get({ id: answer.cell.id })).cell).toEqual(answer.cell)
    expect((await ada.client.cell_grant_list({ cell_id: answer.cell.id })).grants).toEqual([])
  })

  it('has the data merged with the patch, by RFC 7396', async () => {
    const source = await cellRow(test, {
      created_by: ada.actor_id,
      data: { label: 'x', summary: 'gone', nested: { a: 1, b: 2 } },
    })
    const { cell } = await clone(source, {
      with_data_patch: { summary: null, nested: { b: null, c: 3 }, more: [1] },
    })
    expect(cell.data).toEqual({ label: 'x', nested: { a: 1, c: 3 }, more: [1] })
    expect((await ada.client.cell_get({ id: source })).cell.data).toMatchObject({ summary: 'gone' })
  })

  it('takes ordinary keys of any name', async () => {
    const source = await cellRow(test, { created_by: ada.actor_id })
    const with_data_patch = JSON.parse('{"__proto__":{"a":1},"":1,"nested":{"kind":"x"}}')
    const { cell } = await clone(source, { with_data_patch })
    expect(JSON.parse(JSON.stringify(cell.data))).toEqual(with_data_patch)
  })
})

describe('refused, with nothing written', () => {
  const refused = (source_id: string, more: Partial<Input>, reason: string, by = ada) =>
    scenario(test, () => clone(source_id, more, by), { reason })

  it('for a cell that is hidden, deleted or missing, before the patch is checked', async () => {
    const hidden = await cellRow(test, { created_by: bob.actor_id })
    const deleted = await cellRow(test, { visibility: 'public', deleted_at: '2026-01-01T00:00:00Z' })
    for (const id of [hidden, deleted, randomUUID(), ada.actor_id])
      for (const more of [{}, deep, { with_data_patch: { kind: 'x' } }])
        await refused(id, more, 'cell_not_found')
    await refused(deleted, {}, 'cell_not_found', root)
  })

  it('with a top-level kind in the patch, null too', async () => {
    const source = await cellRow(test, { created_by: ada.actor_id })
    for (const kind of ['x', null]) await refused(source, { with_data_patch: { kind } }, 'cell_kind_in_data')
  })

  it('if the merged data is too big, although each part alone is not', async () => {
    const data = { a: 'x'.repeat(200_000) }
    const source = await cellRow(test, { created_by: ada.actor_id, data })
    const outcome = await ada.client.try.cell_clone({
      source_id: source,
      with_data_patch: { b: 'x'.repeat(100_000) },
    })
    expect(outcome).toMatchObject({
      ok: false,
      error: { reason: 'invalid_params', data: { issues: [{ path: ['with_data_patch'], code: 'too_big' }] } },
    })
    expect(await reasonOf(clone(source, { with_data_patch: { a: null, b: 'x'.repeat(100_000) } }))).toBe('ok')
  })

  it('for invalid input', async () => {
    const source = await cellRow(test, { created_by: ada.actor_id })
    for (const more of [{ deep: 1 }, { deep: null }, { with_data_patch: null }, { with_data_patch: [] }])
      await refused(source, more as never, 'invalid_params')
  })
})

describe('a shallow clone', () => {
  it('has the edges of the root with their names, positions and far cells, itself included', async () => {
    const ids = await graph(test, ada.actor_id, [
      'root first child',
      'root #1 child',
      'root #2 other',
      'root self root',
      'child next other',
    ])
    const { cell, cloned_count } = await clone(ids.root)
    expect(cloned_count).toBe(1)
    const { fields, items } = await ada.client.cell_get({ id: cell.id })
    expect(fields).toMatchObject([
      { source_id: cell.id, name: 'first', target_id: ids.child },
      { source_id: cell.id, name: 'self', target_id: ids.root },
    ])
    expect(items).toMatchObject([
      { parent_id: cell.id, position: '1', child_id: ids.child },
      { parent_id: cell.id, position: '2', child_id: ids.other },
    ])
    expect(fields[0]?.created_at).toBe(cell.created_at)
  })

  it('drops edges to cells that the caller may not view', async () => {
    const ids = await graph(test, bob.actor_id, ['root a hidden', 'root #1 deleted', 'root #2 open'], {
      root: { visibility: 'public' },
      open: { visibility: 'public' },
      deleted: { visibility: 'public', deleted_at: '2026-01-01T00:00:00Z' },
    })
    const { cell } = await clone(ids.root)
    const { fields, items } = await root.client.cell_get({ id: cell.id })
    expect(fields).toEqual([])
    expect(items.map(({ child_id }) => child_id)).toEqual([ids.open])
  })
})

describe('a deep clone', () => {
  const copied = async (edges: Parameters<typeof graph>[2], start = 'a') => {
    const ids = await graph(test, ada.actor_id, edges)
    const { cell, cloned_count } = await clone(ids[start], deep)
    return { ids, cell, cloned_count, before: await seen(ada, ids[start] as string) }
  }
  const shapes: [string, number, Parameters<typeof graph>[2]][] = [
    ['a cell that leads to itself', 1, ['a #1 a']],
    ['a cycle of three', 3, ['a next b', 'b #1 c', 'c next a']],
    ['a child listed twice, and by a field too', 2, ['a #1 b', 'a #2 b', 'a f b']],
    ['a diamond', 4, ['a #1 b', 'a #2 c', 'b x d', 'c x d']],
    ['a child with a shortcut', 4, ['a #1 b', 'b #1 c', 'c #1 d', 'a end d']],
  ]
  it.each(shapes)('of %s is the same shape over new cells', async (_what, count, edges) => {
    const { ids, cell, cloned_count, before } = await copied(edges)
    expect(cloned_count).toBe(count)
    expect(await seen(ada, cell.id)).toEqual(before)
    const reached = async (id: string, all = new Set<string>()): Promise<Set<string>> => {
      if (all.has(id)) return all
      all.add(id)
      const { fields, items } = await ada.client.cell_get({ id })
      const far = [...fields.map(({ target_id }) => target_id), ...items.map(({ child_id }) => child_id)]
      for (const one of far) await reached(one, all)
      return all
    }
    const clones = await reached(cell.id)
    expect(clones.size).toBe(count)
    for (const id of Object.values(ids)) expect(clones).not.toContain(id)
  })

  it('patches the root only; children keep data, kind and visibility and are the caller’s', async () => {
    const ids = await graph(test, bob.actor_id, ['a #1 b'], {
      a: { visibility: 'public', data: { name: 'a' } },
      b: { visibility: 'public', kind: 'leaf', path: 'the/leaf', data: { name: 'b', n: 1 } },
    })
    const { cell } = await clone(ids.a, { ...deep, with_data_patch: { n: 2 } })
    expect(cell.data).toEqual({ name: 'a', n: 2 })
    const { items } = await ada.client.cell_get({ id: cell.id })
    expect((await ada.client.cell_get({ id: items[0]?.child_id as string })).cell).toMatchObject({
      kind: 'leaf',
      visibility: 'public',
      path: null,
      data: { name: 'b', n: 1 },
      version: 1,
      created_by: ada.actor_id,
    })
  })

  it('includes what the caller may view by any right, but neither hidden cells nor what is behind them', async () => {
    const ids = await graph(
      test,
      bob.actor_id,
      [
        'a #1 granted',
        'a #2 byRole',
        'a #3 hidden',
        'a #4 deleted',
        'hidden #1 behind',
        'deleted #1 behind',
        'byRole f open',
        'open f hidden',
      ],
      {
        a: { visibility: 'public' },
        open: { visibility: 'public' },
        behind: { visibility: 'public' },
        deleted: { visibility: 'public', deleted_at: '2026-01-01T00:00:00Z' },
      },
    )
    await test.cellGrant(ids.granted as string, 'viewer', { actor_id: ada.actor_id })
    await test.cellGrant(ids.byRole as string, 'editor', { role: 'team', scope_id: null })
    const { cell, cloned_count } = await clone(ids.a, deep)
    expect(cloned_count).toBe(4)
    expect(await seen(root, cell.id)).toEqual(['a #1 granted', 'a #2 byRole', 'byRole f open'])
    expect(await seen(ada, cell.id)).toEqual(await seen(ada, ids.a as string))
    expect((await clone(ids.a, deep, root)).cloned_count).toBe(6)
    expect((await clone(ids.a, deep, await test.account())).cloned_count).toBe(1)
  })

  it('leaves the sources as they are, and two clones share nothing', async () => {
    const { ids, cell } = await copied(['a #1 b'])
    const { cell: again } = await clone(ids.a, deep)
    const [one, two] = await Promise.all(
      [cell, again].map(async ({ id }) => (await ada.client.cell_get({ id })).items[0]?.child_id as string),
    )
    expect(new Set([ids.b, one, two]).size).toBe(3)
    await ada.client.cell_update({ cell_id: one as string, data: { changed: true } })
    expect((await ada.client.cell_get({ id: ids.b as string })).cell.data).toEqual({ name: 'b' })
  })

  it('of a clone is possible, and its edges can be changed independently', async () => {
    const { cell } = await copied(['a f b'])
    const { fields } = await ada.client.cell_get({ id: cell.id })
    await fieldRow(test, cell.id, 'more', fields[0]?.target_id as string)
    await itemRow(test, fields[0]?.target_id as string, '1', cell.id)
    const { cell: second, cloned_count } = await clone(cell.id, deep)
    expect(cloned_count).toBe(2)
    expect(await seen(ada, second.id)).toEqual(['a f b', 'a more b', 'b #1 a'])
  })

  it('leaves one audit row, whatever its size', async () => {
    const ids = await graph(
      test,
      ada.actor_id,
      Array.from({ length: 49 }, (_, n) => `a #${n} child-${n}`),
    )
    const answer = await scenario(test, () => clone(ids.a, deep), {
      audit: [{ event_type: 'cell_clone' }],
    })
    expect(answer.cloned_count).toBe(50)
  })
})

it('clones and creations of an account share one budget, a clone counting once', async () => {
  const node = await testService({ limit_cell_create: '3/900' })
  const { client } = await node.account()
  const { cell } = await client.cell_create({ data: {} })
  for (const _ of [1, 2]) await client.cell_clone({ source_id: cell.id, deep: true })
  expect(await reasonOf(client.cell_clone({ source_id: cell.id }))).toBe('rate_limited')
  expect(await reasonOf(client.cell_create({ data: {} }))).toBe('rate_limited')
  await node.close()
})
