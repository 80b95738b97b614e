import { expect, test as it } from 'vitest'
import { cellRow, fieldRow, itemRow } from '../../test/helpers/cell-rows.ts'
import { call, rpc } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { actions } from '../actions.ts'
import { sql } from '../db/db.ts'
import { scenario } from '../testing/index.ts'

/**
 * What a caller may not see gets the same bytes, and costs the same statements, as what does not exist; nothing is
 * written.
 */

const sent: string[] = []
const test = await serviceForFile({ onStatement: (text) => sent.push(text) })
const [ada, bob] = await Promise.all([test.account(), test.account()])
const missing = '11111111-1111-4111-8111-111111111111'
const own = await cellRow(test, { created_by: ada.actor_id })
/** Ada may view these, and edit neither. */
const [open, edited] = [
  await cellRow(test, { created_by: bob.actor_id, visibility: 'public' }),
  await cellRow(test, { created_by: bob.actor_id }),
]
await test.cellGrant(open, 'viewer', { actor_id: ada.actor_id })
await test.cellGrant(edited, 'editor', { actor_id: ada.actor_id })
const hidden = await cellRow(test, { created_by: bob.actor_id, path: 'hidden' })
const gone = { deleted_at: '2026-01-01T00:00:00Z', visibility: 'public' } as const
const deleted = await cellRow(test, { ...gone, created_by: ada.actor_id, path: 'gone' })
const grants = {
  hidden: (await test.cellGrant(hidden, 'viewer', { role: 'team', scope_id: null })).id,
  edited: (await test.cellGrant(edited, 'viewer', { role: 'team', scope_id: null })).id,
}
const late = await cellRow(test, { created_by: ada.actor_id })
const lateGrant = (await test.cellGrant(late, 'viewer', { actor_id: bob.actor_id })).id
await ada.client.cell_delete({ cell_id: late })
for (const id of [own, open, hidden, deleted]) {
  await fieldRow(test, id, 'held', open)
  await itemRow(test, id, 'held', open)
}
await itemRow(test, await cellRow(test, { created_by: ada.actor_id }), 'elsewhere', open)
await itemRow(test, own, 'dead', deleted)
await itemRow(test, own, 'shy', hidden)
const audit = await test.service.app.db.one<{ id: string }>(sql`select id from audit_entries() limit 1`)

/** Inputs that name, in this order, a missing cell, what the caller may not see, ids of other things, and `more`. */
const cells = (input: (id: string) => object, ...more: string[]) =>
  [missing, hidden, deleted, late, ada.actor_id, bob.actor_id, ada.id, grants.hidden, audit.id, ...more].map(
    input,
  )
const principal = { role: 'admin' }

const calls: [string, `cell_${string}`, object[]][] = [
  ['by id', 'cell_get', cells((id) => ({ id }))],
  ['by path', 'cell_get', ['missing', 'hidden', 'gone'].map((path) => ({ path }))],
  ['', 'cell_update', cells((cell_id) => ({ cell_id, data: {} }), open)],
  ['', 'cell_delete', cells((cell_id) => ({ cell_id }), open)],
  ['', 'cell_delete_preview', cells((cell_id) => ({ cell_id }), open)],
  ['', 'cell_access_explain', cells((cell_id) => ({ cell_id }), open, edited)],
  [
    'of somebody',
    'cell_access_explain',
    cells((cell_id) => ({ cell_id, actor_id: bob.actor_id }), open, edited),
  ],
  ['', 'cell_clone', cells((source_id) => ({ source_id }))],
  ['', 'cell_clone_preview', cells((source_id) => ({ source_id }))],
  ['deep', 'cell_clone_preview', cells((source_id) => ({ source_id, deep: true }))],
  ['deep', 'cell_clone', cells((source_id) => ({ source_id, deep: true }))],
  ['', 'cell_audit_list', cells((cell_id) => ({ cell_id }), open, edited)],
  ['', 'cell_grant_list', cells((cell_id) => ({ cell_id }), open, edited)],
  ['', 'cell_grant_create', cells((cell_id) => ({ cell_id, level: 'viewer', principal }), open, edited)],
  [
    '',
    'cell_grant_revoke',
    [missing, grants.hidden, grants.edited, lateGrant, hidden, own].map((grant_id) => ({ grant_id })),
  ],
  ['of a cell', 'cell_field_list', cells((source_id) => ({ source_id }))],
  ['to a cell', 'cell_field_list', cells((target_id) => ({ target_id }))],
  ['of a cell', 'cell_item_list', cells((parent_id) => ({ parent_id }))],
  ['with a cell', 'cell_item_list', cells((child_id) => ({ child_id }))],
  [
    'from a cell',
    'cell_field_set',
    cells((source_id) => ({ source_id, name: 'held', target_id: open }), open),
  ],
  ['to a cell', 'cell_field_set', cells((target_id) => ({ source_id: own, name: 'new', target_id }))],
  // The answer does not even reveal whether a position is taken.
  ...['held', 'new'].flatMap((position): [string, 'cell_item_insert', object[]][] => [
    [
      `into a cell, ${position}`,
      'cell_item_insert',
      cells((parent_id) => ({ parent_id, child_id: open, position }), open),
    ],
    [
      `of a cell, ${position}`,
      'cell_item_insert',
      cells((child_id) => ({ parent_id: own, child_id, position })),
    ],
  ]),
  [
    'in a cell',
    'cell_item_move',
    cells((parent_id) => ({ parent_id, position: 'held', new_position: 'b' }), open),
  ],
  [
    'from a position that is empty, of another cell, or whose child is deleted or hidden now',
    'cell_item_move',
    ['empty', 'dead', 'shy', 'elsewhere'].flatMap((position) =>
      ['b', 'held', position].map((new_position) => ({ parent_id: own, position, new_position })),
    ),
  ],
  ['from a cell', 'cell_field_delete', cells((source_id) => ({ source_id, name: 'held' }), open)],
  ['of nothing', 'cell_field_delete', cells((source_id) => ({ source_id, name: 'none' }), open)],
  ['from a cell', 'cell_item_delete', cells((parent_id) => ({ parent_id, position: 'held' }), open)],
  ['of nothing', 'cell_item_delete', cells((parent_id) => ({ parent_id, position: 'none' }), open)],
]

it('all methods that take a cell are called (otherwise: add a row to `calls`)', () => {
  const methods = Object.keys(actions).filter((name) => name.startsWith('cell_'))
  const others = ['cell_create', 'cell_list']
  expect(
    methods.filter((name) => !others.includes(name) && !calls.some(([, called]) => called === name)),
  ).toEqual([])
})

it.each(calls)('%s %s', async (_what, method, inputs) => {
  const answer = async (input: object, cookie: string | undefined) => {
    sent.length = 0
    const headers = { 'x-request-id': 'same', ...(cookie !== undefined && { cookie }) }
    const { status, headers: received, text } = await rpc(test.url, call(method, input), headers)
    // Left out: whether other calls have left audit rows to be numbered varies.
    const statements = sent.filter((one) => !/audit_waiting|audit_number/.test(one))
    const { date: _, ...rest } = received
    return { status, rest, text, statements }
  }
  const reason = method === 'cell_grant_revoke' ? 'cell_grant_not_found' : 'cell_not_found'
  await scenario(test, async () => {
    for (const cookie of method === 'cell_get' ? [ada.cookie, undefined] : [ada.cookie]) {
      const wanted = await answer(inputs[0] as object, cookie)
      expect(wanted.statements.length).toBeGreaterThan(0)
      expect(wanted).toMatchObject({ status: 404, text: expect.stringContaining(reason) })
      for (const input of inputs) expect(await answer(input, cookie), JSON.stringify(input)).toEqual(wanted)
    }
  })
})
