import { expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { scenario } from '../testing/index.ts'

const test = await serviceForFile()

it('each method in the life of a cell leaves one audit row', async () => {
  const ada = await test.account()
  const made = await scenario(test, () => ada.client.cell_create({ data: { label: 'x' } }), {
    audit: [{ event_type: 'cell_create', actor_id: ada.actor_id, account_id: ada.id }],
  })
  const id = made?.cell.id as string
  await scenario(test, () => ada.client.cell_get({ id }))
  await scenario(test, () => ada.client.cell_update({ cell_id: id, data_patch: { label: 'y' } }), {
    audit: [{ event_type: 'cell_update', metadata: { cell_id: id } }],
  })
  await scenario(test, () => ada.client.cell_update({ cell_id: id, data: { label: 'y' } }))
  await scenario(test, () => ada.client.cell_delete({ cell_id: id }), {
    audit: [{ event_type: 'cell_delete' }],
  })
  await scenario(test, () => ada.client.cell_delete({ cell_id: id }), { reason: 'cell_not_found' })
  expect(await ada.client.cell_list()).toEqual({ cells: [], next_cursor: null })
})
