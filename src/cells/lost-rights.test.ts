import { afterAll, beforeEach, describe, expect, test as it } from 'vitest'
import { cellRow, endCellGrant, endRole, fieldRow, itemRow } from '../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { actions } from '../actions.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

/**
 * Rights that are lost while a write waits for the lock of its cell, which a rival holds, or between that lock and
 * the write: the call is refused, nothing is written, and it leaves no audit row.
 */

/** Runs inside the call, between reading the cell and writing it, if the data requests it. */
let meanwhile: () => Promise<unknown> = async () => {}
const sent: string[] = []
const test = await serviceForFile({
  onStatement: (text) => sent.push(text),
  hooks: {
    async validateData(_kind: string | null, data: Record<string, unknown>) {
      if (data.meanwhile) await meanwhile()
      return data
    },
  },
})
const { db } = test.service.app
const [ada, editor] = await Promise.all([test.account(), test.account()])
const other = await rival(test.databaseUrl)
afterAll(() => other.close())

let cell_id: string
let far: string
let grant_id: string
beforeEach(async () => {
  cell_id = await cellRow(test, { created_by: ada.actor_id })
  far = await cellRow(test, { created_by: ada.actor_id, visibility: 'public' })
  await itemRow(test, cell_id, 'a', far)
  await fieldRow(test, cell_id, 'a', far)
  await test.cellGrant(cell_id, 'editor', { actor_id: editor.actor_id })
  grant_id = (await test.cellGrant(cell_id, 'viewer', { role: 'reading', scope_id: null })).id
})

/** What a write may change. */
const stored = () =>
  db.one(sql`
    select version, data, visibility, path,
      array(select position || child_id from cell_item where parent_id = c.id order by 1) as items,
      array(select name || target_id from cell_field where source_id = c.id order by 1) as fields,
      array(select level || role from cell_grant where cell_id = c.id and role is not null order by 1) as grants
    from cell c where id = ${cell_id}`)
const hold = () => other.begin('select from cell where id = $1 for no key update', [cell_id])
type Change = [text: string, values: unknown[]]
/** The call waits for a lock of the rival, which makes the change and commits. */
async function waits<T>(call: () => Promise<T>, change?: Change): Promise<T> {
  const answer = call()
  // Its refusal may arrive before the reply to the commit.
  answer.catch(() => {})
  await other.blocks(1)
  if (change) await other.query(...change)
  await other.commit()
  return await answer
}
async function refused(call: () => Promise<unknown>, change: Change, reason = 'cell_not_found') {
  const before = await stored()
  await scenario(test, () => waits(call, change), { reason })
  expect(await stored()).toEqual(before)
}

type Client = TestAccount['client']
type Write = [what: string, call: (client: Client) => Promise<unknown>]
const linking: Write[] = [
  ['cell_field_set', (by) => by.cell_field_set({ source_id: cell_id, name: 'b', target_id: far })],
  ['cell_item_insert', (by) => by.cell_item_insert({ parent_id: cell_id, child_id: far, position: 'b' })],
  ['cell_item_move', (by) => by.cell_item_move({ parent_id: cell_id, position: 'a', new_position: 'b' })],
]
const edits: Write[] = [
  ...linking,
  [
    'cell_field_set elsewhere',
    (by) => by.cell_field_set({ source_id: cell_id, name: 'a', target_id: cell_id }),
  ],
  ['cell_field_delete', (by) => by.cell_field_delete({ source_id: cell_id, name: 'a' })],
  ['cell_item_delete', (by) => by.cell_item_delete({ parent_id: cell_id, position: 'a' })],
  ['cell_update', (by) => by.cell_update({ cell_id, data: { late: 1 } })],
  ['cell_delete', (by) => by.cell_delete({ cell_id })],
]
const manages: Write[] = [
  [
    'cell_grant_create',
    (by) => by.cell_grant_create({ cell_id, level: 'viewer', principal: { role: 'admin' } }),
  ],
  ['cell_grant_revoke', (by) => by.cell_grant_revoke({ grant_id })],
]
const byAdmins: Write[] = [['cell_update of the path', (by) => by.cell_update({ cell_id, path: 'late' })]]

it('all methods that change a given cell are called (otherwise: add a row to `edits` or `manages`)', () => {
  const others = ['cell_create', 'cell_clone']
  const called = [...edits, ...manages].map(([what]) => what)
  const writes = Object.entries(actions).filter(
    ([name, { side_effects }]) => name.startsWith('cell_') && side_effects,
  )
  expect(
    writes.map(([name]) => name).filter((name) => !called.includes(name) && !others.includes(name)),
  ).toEqual([])
})

const revoked = (actor_id: string): Change => [
  'delete from cell_grant where cell_id = $1 and actor_id = $2',
  [cell_id, actor_id],
]
const noRole = (actor_id: string): Change => [
  'update role_grant set revoked_at = now() where actor_id = $1',
  [actor_id],
]
const deleted = (): Change => ['update cell set deleted_at = now() where id = $1', [cell_id]]
const [newAdmin, newMember] = ['admin', 'team'].map((role) => () => test.account({ roles: [role] })) as [
  () => Promise<TestAccount>,
  () => Promise<TestAccount>,
]

describe.each<[string, () => Promise<TestAccount>, (actor_id: string) => Change, Write[]]>([
  ['an editor whose grant is revoked', async () => editor, revoked, edits],
  [
    'an editor who becomes a viewer',
    async () => editor,
    (actor_id) => [
      `update cell_grant set level = 'viewer' where cell_id = $1 and actor_id = $2`,
      [cell_id, actor_id],
    ],
    edits,
  ],
  ['a member of a team that it leaves', newMember, noRole, edits],
  ['an admin who loses the role', newAdmin, noRole, [...edits, ...manages, ...byAdmins]],
  [
    'an owner who is purged',
    async () => ada,
    () => ['update cell set created_by = null where id = $1', [cell_id]],
    [...edits, ...manages],
  ],
  ['an owner whose cell is deleted', async () => ada, deleted, [...edits, ...manages]],
  ['an admin, where the cell is deleted', newAdmin, deleted, [...edits, ...manages, ...byAdmins]],
])('behind the lock: %s', (_what, who, change, writes) => {
  it.each(writes)('%s', async (method, call) => {
    const { client, actor_id } = await who()
    await test.cellGrant(cell_id, 'editor', { role: 'team', scope_id: null })
    await hold()
    const reason = method === 'cell_grant_revoke' ? 'cell_grant_not_found' : 'cell_not_found'
    await refused(() => call(client), change(actor_id), reason)
  })
})

it.each(edits)('an editor who keeps the right by another grant: %s is written', async (_method, call) => {
  const role = `kept by ${cell_id}`
  await test.roleGrant({ actor_id: editor.actor_id, role })
  await test.cellGrant(cell_id, 'editor', { role, scope_id: null })
  await hold()
  sent.length = 0
  expect(await reasonOf(waits(() => call(editor.client), revoked(editor.actor_id)))).toBe('ok')
  // The statement that waits for the lock, and the one that writes after it.
  const last = sent.filter((text) => /\bcell c\b/.test(text)).slice(-2)
  for (const text of last) expect(text).toContain('me.is_admin')
})

describe.each(linking)('%s', (_method, call) => {
  it.each([
    ['hidden', `update cell set visibility = 'private' where id = $1`],
    ['deleted', 'update cell set deleted_at = now() where id = $1'],
  ])('to a cell that is being %s: refused', async (_what, change) => {
    await hold()
    await refused(() => call(editor.client), [change, [far]])
  })

  it('to a cell whose grant is being revoked: refused', async () => {
    await db.run(sql`update cell set visibility = 'private' where id = ${far}`)
    await test.cellGrant(far, 'viewer', { actor_id: editor.actor_id })
    await hold()
    await refused(() => call(editor.client), ['delete from cell_grant where cell_id = $1', [far]])
  })

  it('to a cell that is purged while the write waits for it: refused, no unexpected failure', async () => {
    await db.run(sql`delete from cell_field where source_id = ${cell_id}`)
    await other.begin('delete from cell where id = $1', [far])
    expect(await reasonOf(waits(() => call(editor.client)))).toBe('cell_not_found')
    expect(await stored()).toMatchObject({ items: [], fields: [] })
  })
})

it('an edge to a cell that is deleted at the same time may be written, but does not exist then', async () => {
  await other.begin('update cell set deleted_at = now() where id = $1', [far])
  const { client } = editor
  await client.cell_field_set({ source_id: cell_id, name: 'f', target_id: far })
  await client.cell_item_insert({ parent_id: cell_id, child_id: far, position: 'b' })
  await client.cell_item_move({ parent_id: cell_id, position: 'a', new_position: 'c' })
  await other.commit()
  expect(await stored()).toMatchObject({ items: { length: 2 }, fields: { length: 2 } })
  expect(await client.cell_get({ id: cell_id })).toMatchObject({ fields: [], items: [] })
  expect((await client.cell_item_list({ parent_id: cell_id })).items).toEqual([])
  expect((await client.cell_field_list({ source_id: cell_id })).fields).toEqual([])
  const item = { parent_id: cell_id, position: 'b' }
  expect((await scenario(test, () => client.cell_item_delete(item))).deleted).toBe(false)
  expect(await reasonOf(client.cell_item_move({ ...item, new_position: 'c' }))).toBe('cell_not_found')
  await client.cell_item_insert({ ...item, child_id: cell_id })
})

describe('between reading and writing', () => {
  type Changes = Omit<Parameters<Client['cell_update']>[0], 'cell_id'>
  const [path, visibility, data] = [{ path: 'lost' }, { visibility: 'public' as const }, {}]
  it.each<[string, Changes, string]>([
    ['the grant', data, 'cell_not_found'],
    ['the role that the grant is for', data, 'cell_not_found'],
    ['the actor itself', data, 'account_vanished'],
    ['the admin role', data, 'cell_not_found'],
    ['the admin role', path, 'cell_not_found'],
    ['the admin role of an editor', path, 'cell_path_admin_only'],
    ['the admin role of an editor', visibility, 'cell_visibility_manage_only'],
    ['the admin role of an editor', { ...path, ...visibility }, 'cell_visibility_manage_only'],
    ['the admin role of an editor', data, 'ok'],
  ])('%s, for a change of data and %j: %s', async (what, changes, reason) => {
    const roles = what.includes('admin') || what.includes('actor') ? ['admin'] : ['team']
    const { id, actor_id, client } = await test.account({ roles })
    const principal = what.includes('role that') ? { role: 'team', scope_id: null } : { actor_id }
    if (/grant|editor/.test(what)) await test.cellGrant(cell_id, 'editor', principal)
    meanwhile = () => {
      if (what === 'the grant') return endCellGrant(test, cell_id, actor_id)
      if (what === 'the actor itself') return db.run(sql`delete from account where id = ${id}`)
      return endRole(test, actor_id, roles[0] as string)
    }
    const before = await stored()
    const update = () => client.cell_update({ cell_id, data_patch: { meanwhile: 1 }, ...changes })
    if (reason === 'ok') await update()
    else {
      await scenario(test, update, { reason })
      expect(await stored()).toEqual(before)
    }
  })
})
