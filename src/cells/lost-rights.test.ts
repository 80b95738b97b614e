import { describe, expect, test as it } from 'vitest'
import { cellRow, endCellGrant, endRole } from '../../test/helpers/cell-rows.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

/** Runs inside the call, between the lock and the write, if the data requests it. */
let meanwhile: () => Promise<unknown> = async () => {}

const test = await serviceForFile({
  hooks: {
    async validateData(_kind: string | null, data: Record<string, unknown>) {
      if (data.meanwhile) await meanwhile()
      return data
    },
  },
})
const [ada, editor, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])

type Changes = Omit<Parameters<TestAccount['client']['cell_update']>[0], 'cell_id'>
const stored = async (id: string) => (await root.client.cell_get({ id })).cell
const update = (account: TestAccount, cell_id: string, changes: Changes) =>
  account.client.cell_update({ cell_id, ...changes })

describe('a right that is lost between lock and write', () => {
  const lost = async (who: TestAccount, cell_id: string, changes: Changes, reason: string) => {
    const before = await stored(cell_id)
    await scenario(test, () => update(who, cell_id, { data_patch: { meanwhile: 1 }, ...changes }), { reason })
    expect(await stored(cell_id)).toEqual(before)
  }

  it('the grant: nothing is written', async () => {
    const cell_id = await cellRow(test, { created_by: ada.actor_id })
    await test.cellGrant(cell_id, 'editor', { actor_id: editor.actor_id })
    meanwhile = () => endCellGrant(test, cell_id, editor.actor_id)
    await lost(editor, cell_id, {}, 'cell_not_found')
  })

  it('the role that the grant is for', async () => {
    const member = await test.account({ roles: ['team'] })
    const cell_id = await cellRow(test, { created_by: ada.actor_id })
    await test.cellGrant(cell_id, 'editor', { role: 'team', scope_id: null })
    meanwhile = () => endRole(test, member.actor_id, 'team')
    await lost(member, cell_id, {}, 'cell_not_found')
  })

  it.each<[string, Changes, string]>([
    ['nothing else', {}, 'cell_not_found'],
    ['a path', { path: 'lost' }, 'cell_not_found'],
  ])('admin, who has no other right: %s', async (_what, changes, reason) => {
    const former = await test.account({ roles: ['admin'] })
    const cell_id = await cellRow(test, { created_by: ada.actor_id })
    meanwhile = () => endRole(test, former.actor_id, 'admin')
    await lost(former, cell_id, changes, reason)
  })

  it.each<[string, Changes, string]>([
    ['a path', { path: 'lost' }, 'cell_path_admin_only'],
    ['visibility', { visibility: 'public' }, 'cell_visibility_manage_only'],
    ['both', { path: 'lost', visibility: 'public' }, 'cell_visibility_manage_only'],
  ])('admin, who stays an editor: %s', async (_what, changes, reason) => {
    const former = await test.account({ roles: ['admin'] })
    const cell_id = await cellRow(test, { created_by: ada.actor_id })
    await test.cellGrant(cell_id, 'editor', { actor_id: former.actor_id })
    meanwhile = () => endRole(test, former.actor_id, 'admin')
    await lost(former, cell_id, changes, reason)
  })

  it('admin, who stays an editor and changes data only: written', async () => {
    const former = await test.account({ roles: ['admin'] })
    const cell_id = await cellRow(test, { created_by: ada.actor_id })
    await test.cellGrant(cell_id, 'editor', { actor_id: former.actor_id })
    meanwhile = () => endRole(test, former.actor_id, 'admin')
    await update(former, cell_id, { data: { meanwhile: 1 } })
  })

  it('the actor itself', async () => {
    const gone = await test.account({ roles: ['admin'] })
    const cell_id = await cellRow(test, { created_by: ada.actor_id })
    meanwhile = () => test.service.app.db.run(sql`delete from account where id = ${gone.id}`)
    await lost(gone, cell_id, {}, 'cell_not_found')
  })
})
