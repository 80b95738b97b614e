import { describe, expect, test as it } from 'vitest'
import { graph, seen } from '../../../test/helpers/cell-graphs.ts'
import { fieldRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { scenario, type TestAccount } from '../../testing/index.ts'

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

describe('a deep clone', () => {
  const copied = async (edges: Parameters<typeof graph>[2], start = 'a') => {
    const ids = await graph(test, ada.actor_id, edges)
    const { cell, cloned_count } = await clone(ids[start], deep)
    return { ids, cell, cloned_count, before: await seen(ada, ids[start] as string) }
  }
  const shapes: [string, number, Parameters<typeof graph>[2]][] = [
    ['a cell that leads to itself', 1, [['a', 'a', '#1']]],
    [
      'a cycle of three',
      3,
      [
        ['a', 'b', 'next'],
        ['b', 'c', '#1'],
        ['c', 'a', 'next'],
      ],
    ],
    [
      'a child listed twice, and by a field too',
      2,
      [
        ['a', 'b', '#1'],
        ['a', 'b', '#2'],
        ['a', 'b', 'f'],
      ],
    ],
    [
      'a diamond',
      4,
      [
        ['a', 'b', '#1'],
        ['a', 'c', '#2'],
        ['b', 'd', 'x'],
        ['c', 'd', 'x'],
      ],
    ],
    [
      'a child with a shortcut',
      4,
      [
        ['a', 'b', '#1'],
        ['b', 'c', '#1'],
        ['c', 'd', '#1'],
        ['a', 'd', 'end'],
      ],
    ],
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
    const ids = await graph(test, bob.actor_id, [['a', 'b', '#1']], {
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
        ['a', 'granted', '#1'],
        ['a', 'byRole', '#2'],
        ['a', 'hidden', '#3'],
        ['a', 'deleted', '#4'],
        ['hidden', 'behind', '#1'],
        ['deleted', 'behind', '#1'],
        ['byRole', 'open', 'f'],
        ['open', 'hidden', 'f'],
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
    const { ids, cell } = await copied([['a', 'b', '#1']])
    const { cell: again } = await clone(ids.a, deep)
    const [one, two] = await Promise.all(
      [cell, again].map(async ({ id }) => (await ada.client.cell_get({ id })).items[0]?.child_id as string),
    )
    expect(new Set([ids.b, one, two]).size).toBe(3)
    await ada.client.cell_update({ cell_id: one as string, data: { changed: true } })
    expect((await ada.client.cell_get({ id: ids.b as string })).cell.data).toEqual({ name: 'b' })
  })

  it('of a clone is possible, and its edges can be changed independently', async () => {
    const { cell } = await copied([['a', 'b', 'f']])
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
      Array.from({ length: 49 }, (_, n): [string, string, string] => ['a', `child ${n}`, `#${n}`]),
    )
    const answer = await scenario(test, () => clone(ids.a, deep), {
      audit: [{ event_type: 'cell_clone' }],
    })
    expect(answer.cloned_count).toBe(50)
  })
})
