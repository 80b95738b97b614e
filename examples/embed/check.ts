/**
 * The application's own test, with `cellkeep/testing`: a service with its role, hooks and method on a database
 * made for this run. Any test runner will do; this one uses none.
 *
 *     node examples/embed/check.ts
 */
import assert from 'node:assert/strict'
// In a project of your own: import … from 'cellkeep/testing'
import { scenario, testService } from '../../src/testing/index.ts'
import { actions, hooks, type Library, roles } from './library.ts'

const test = await testService<Library>({ roles, hooks, actions })
try {
  const reader = await test.account()
  const librarian = await test.account({ roles: ['librarian'] })

  // The call must write exactly these audit rows.
  await scenario(test, () => reader.client.cell_create({ kind: 'book', data: { isbn: '0-201-03801-3' } }), {
    audit: [{ event_type: 'cell_create', actor_id: reader.actor_id }],
  })
  await scenario(test, () => reader.client.cell_create({ kind: 'book', data: {} }), {
    reason: 'cell_data_invalid',
  })
  await scenario(test, () => reader.client.cell_create({ visibility: 'public', data: {} }), {
    reason: 'cell_create_forbidden',
  })

  await scenario(test, () => reader.client.shelf_count({}), { reason: 'insufficient_permissions' })
  assert.deepEqual(await librarian.client.shelf_count({ kind: 'book' }), {
    shelves: [{ kind: 'book', cells: 1 }],
  })
  console.log('The role, the hooks and the method do what they should.')
} finally {
  await test.close()
}
