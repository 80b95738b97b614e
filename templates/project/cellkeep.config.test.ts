import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Actions } from 'cellkeep'
import { type TestService, testService } from 'cellkeep/testing'
import config, { type actions } from './cellkeep.config.ts'

let service: TestService<Actions & typeof actions>
before(async () => {
  service = await testService(config)
})
after(() => service.close())

test('a note needs a label', async () => {
  const { client } = await service.account()
  const made = await client.try.cell_create({ kind: 'note', data: {} })
  assert.equal(made.ok || made.error.reason, 'cell_data_invalid')
})

test('only curators count labels', async () => {
  const ada = await service.account({ roles: ['curator'] })
  for (const label of ['tea', 'tea', 'milk']) await ada.client.cell_create({ kind: 'note', data: { label } })
  assert.deepEqual(await ada.client.note_labels({}), {
    labels: [
      { label: 'tea', notes: 2 },
      { label: 'milk', notes: 1 },
    ],
  })
  const { client } = await service.account()
  const refused = await client.try.note_labels({})
  assert.equal(refused.ok || refused.error.reason, 'insufficient_permissions')
})
