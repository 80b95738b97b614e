import { expect, it } from 'vitest'
import { chain, graph } from '../../../test/helpers/cell-graphs.ts'
import { cellRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { scenario } from '../../testing/index.ts'

const test = await serviceForFile()
const [ada, bob] = await Promise.all([test.account(), test.account()])
const preview = (source_id: string | undefined, deep = true, by = ada) =>
  by.client.cell_clone_preview({ source_id: source_id as string, deep })

it('says what a clone then copies, of the cells that the caller sees', async () => {
  const { root } = await graph(
    test,
    ada.actor_id,
    ['root a one', 'root #1 two', 'one a three', 'three a root', 'two a secret', 'secret a four'],
    { secret: { created_by: null }, four: {} },
  )
  const shallow = await scenario(test, () => preview(root, false))
  expect(shallow).toEqual({ cells: 1, edges: 2, bytes: 15, depth: 0 })
  const deep = await preview(root)
  const { cloned_count, cell } = await ada.client.cell_clone({ source_id: root as string, deep: true })
  expect(deep).toEqual({ cells: cloned_count, edges: 4, bytes: 15 + 14 + 14 + 16, depth: 2 })
  expect(cloned_count).toBe(4)
  expect(await preview(cell.id)).toEqual(deep)
})

it('names the limit that a clone would break', async () => {
  const root = await cellRow(test, { created_by: ada.actor_id })
  await chain(test, root, 33, ada.actor_id)
  const outcome = await ada.client.try.cell_clone_preview({ source_id: root, deep: true })
  expect(outcome).toMatchObject({
    ok: false,
    error: { reason: 'cell_clone_too_large', data: { limit: 'depth', max: 32 } },
  })
})

it('of a cell that is hidden or missing is cell_not_found', async () => {
  const id = await cellRow(test, { created_by: bob.actor_id })
  expect(await reasonOf(preview(id))).toBe('cell_not_found')
  expect(await reasonOf(preview(crypto.randomUUID()))).toBe('cell_not_found')
  expect(await preview(id, true, bob)).toEqual({ cells: 1, edges: 0, bytes: 2, depth: 0 })
})
