import { afterEach, beforeEach, describe, expect, test as it } from 'vitest'
import { cellRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { type Rival, rival } from '../../../test/helpers/race.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { scenario, type TestAccount } from '../../testing/index.ts'

/**
 * Rights that are lost between the lock of the anchor and the write. The call waits for the lock, which a rival
 * holds, and checks rights as of before the wait; the rival's transaction also takes a right away.
 */

let parent: string
let child: string
let other: Rival
const test = await serviceForFile()
const [ada, editor] = await Promise.all([test.account(), test.account()])
beforeEach(async () => {
  other = await rival(test.databaseUrl)
  parent = await cellRow(test, { created_by: ada.actor_id })
  child = await cellRow(test, { created_by: ada.actor_id, visibility: 'public' })
  await test.cellGrant(parent, 'editor', { actor_id: editor.actor_id })
  await itemRow(test, parent, 'a', child)
})
afterEach(() => other.close())

type Write = [string, (who: TestAccount) => Promise<unknown>]
const linking: Write[] = [
  [
    'cell_field_set',
    ({ client }) => client.cell_field_set({ source_id: parent, name: 'f', target_id: child }),
  ],
  [
    'cell_item_insert',
    ({ client }) => client.cell_item_insert({ parent_id: parent, child_id: child, position: 'b' }),
  ],
  [
    'cell_item_move',
    ({ client }) => client.cell_item_move({ parent_id: parent, position: 'a', new_position: 'b' }),
  ],
]
const removing: Write[] = [
  ['cell_item_delete', ({ client }) => client.cell_item_delete({ parent_id: parent, position: 'a' })],
]
const edges = () =>
  test.service.app.db.rows(sql`
    select position as key, child_id as far from cell_item where parent_id = ${parent}
    union all select name, target_id from cell_field where source_id = ${parent}`)

/** Checks that the call is refused and writes nothing if this happens while it waits. */
async function refused(call: Promise<unknown>, change: string, values: unknown[]): Promise<void> {
  const before = await edges()
  const outcome = reasonOf(call)
  await other.blocks(1)
  await other.query(change, values)
  await other.commit()
  expect(await outcome).toBe('cell_not_found')
  expect(await edges()).toEqual(before)
}
const hold = () => other.begin('select from cell where id = $1 for no key update', [parent])

describe.each(linking)('%s', (_method, call) => {
  it.each([
    ['hidden', `update cell set visibility = 'private' where id = $1`],
    ['deleted', 'update cell set deleted_at = now() where id = $1'],
  ])('to a cell that is being %s: refused', async (_what, change) => {
    await hold()
    await refused(call(editor), change, [child])
  })

  it('to a cell whose grant is being revoked: refused', async () => {
    await test.service.app.db.run(sql`update cell set visibility = 'private' where id = ${child}`)
    await test.cellGrant(child, 'viewer', { actor_id: editor.actor_id })
    await hold()
    await refused(call(editor), 'delete from cell_grant where cell_id = $1', [child])
  })

  it('to a cell that is purged while the write waits for it: refused, no unexpected failure', async () => {
    await other.begin('delete from cell where id = $1', [child])
    const outcome = reasonOf(call(editor))
    await other.blocks(1)
    await other.commit()
    expect(await outcome).toBe('cell_not_found')
    expect(await edges()).toEqual([])
  })
})

describe.each([...linking, ...removing])('%s', (_method, call) => {
  it('of a member of a team that is being left: refused', async () => {
    const member = await test.account({ roles: ['team'] })
    await test.cellGrant(parent, 'editor', { role: 'team', scope_id: null })
    await hold()
    await refused(call(member), 'update role_grant set revoked_at = now() where actor_id = $1', [
      member.actor_id,
    ])
  })

  it('of an admin who loses the role: refused', async () => {
    const root = await test.account({ roles: ['admin'] })
    await hold()
    await refused(call(root), 'update role_grant set revoked_at = now() where actor_id = $1', [root.actor_id])
  })

  it('of an owner who is being purged: refused', async () => {
    await hold()
    await refused(call(ada), 'update cell set created_by = null where id = $1', [parent])
  })

  it('of an editor who keeps the right by another grant: written', async () => {
    await test.roleGrant({ actor_id: editor.actor_id, role: `kept by ${parent}` })
    await test.cellGrant(parent, 'editor', { role: `kept by ${parent}`, scope_id: null })
    await hold()
    const outcome = reasonOf(call(editor))
    await other.blocks(1)
    await other.query('delete from cell_grant where cell_id = $1 and actor_id = $2', [
      parent,
      editor.actor_id,
    ])
    await other.commit()
    expect(await outcome).toBe('ok')
  })
})

describe('an edge to a cell that is deleted at the same time', () => {
  it('may be written, but does not exist then: not listed, its position free, nothing to delete', async () => {
    await other.begin('update cell set deleted_at = now() where id = $1', [child])
    const { client } = editor
    await client.cell_field_set({ source_id: parent, name: 'f', target_id: child })
    await client.cell_item_insert({ parent_id: parent, child_id: child, position: 'b' })
    await client.cell_item_move({ parent_id: parent, position: 'a', new_position: 'c' })
    await other.commit()
    expect(await edges()).toHaveLength(3)
    expect(await client.cell_get({ id: parent })).toMatchObject({ fields: [], items: [] })
    expect((await client.cell_item_list({ parent_id: parent })).items).toEqual([])
    expect((await client.cell_field_list({ source_id: parent })).fields).toEqual([])
    const gone = await scenario(test, () => client.cell_item_delete({ parent_id: parent, position: 'b' }))
    expect(gone.deleted).toBe(false)
    expect(
      await reasonOf(client.cell_item_move({ parent_id: parent, position: 'b', new_position: 'c' })),
    ).toBe('cell_not_found')
    await client.cell_item_insert({ parent_id: parent, child_id: parent, position: 'b' })
  })
})
