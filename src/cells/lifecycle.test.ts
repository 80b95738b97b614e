import { describe, expect, test as it } from 'vitest'
import { cellRow, endRole, fieldRow, itemRow } from '../../test/helpers/cell-rows.ts'
import { send } from '../../test/helpers/http.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, testService } from '../testing/index.ts'

/** What happens to cells when accounts, actors and roles come and go. */

const test = await serviceForFile({ roles: [{ name: 'team', grant_paths: [] }] })
const root = await test.account({ roles: ['admin'] })

const via = { via: 'test' }
const remove = ({ id }: TestAccount) => test.service.operations.deleteAccount({ account_id: id }, via)
const undelete = ({ id }: TestAccount) => test.service.operations.undeleteAccount({ account_id: id }, via)
const purge = ({ id }: TestAccount) =>
  test.service.operations.purgeAccount({ account_id: id, confirm: true }, via)

type Client = TestAccount['client']
/** A new session for an account, as after an undelete. */
async function signIn({ username, password }: TestAccount): Promise<Client> {
  const body = { username, password }
  const { headers } = await send(test.url, { method: 'POST', path: '/api/account/login', body })
  return test.client(headers['set-cookie']?.[0]?.split(';')[0])
}
const views = (client: Client, id: string) => reasonOf(client.cell_get({ id }))
const edits = (client: Client, cell_id: string) =>
  reasonOf(client.cell_update({ cell_id, data: { at: Math.random() } }))
const manages = (client: Client, cell_id: string) => reasonOf(client.cell_grant_list({ cell_id }))
const tiers = async (client: Client, id: string) =>
  Promise.all([views(client, id), edits(client, id), manages(client, id)])
const none = 'cell_not_found'

/** An owner with a private and a public cell, shared with a viewer and an editor. */
async function household() {
  const [owner, viewer, editor] = await Promise.all([test.account(), test.account(), test.account()])
  const cell_id = await cellRow(test, { created_by: owner.actor_id })
  const open = await cellRow(test, { created_by: owner.actor_id, visibility: 'public' })
  for (const id of [cell_id, open])
    for (const [level, { actor_id }] of [
      ['viewer', viewer],
      ['editor', editor],
    ] as const)
      await owner.client.cell_grant_create({ cell_id: id, level, principal: { actor_id } })
  return { owner, viewer, editor, cell_id, open }
}

describe('the owner', () => {
  it('soft-deleted: public stays public, grantees keep their tier, only admins manage', async () => {
    const { owner, viewer, editor, cell_id, open } = await household()
    await remove(owner)
    expect(await views(test.client(), open)).toBe('ok')
    expect(await views(test.client(), cell_id)).toBe(none)
    expect(await tiers(viewer.client, cell_id)).toEqual(['ok', none, none])
    expect(await tiers(editor.client, cell_id)).toEqual(['ok', 'ok', none])
    expect(await tiers(root.client, cell_id)).toEqual(['ok', 'ok', 'ok'])
    const { cell } = await test.client().cell_get({ id: open })
    expect(cell.created_by).toBe(owner.actor_id)
    // The actor is still the owner, who cannot be granted anything.
    const principal = { actor_id: owner.actor_id }
    expect(await reasonOf(root.client.cell_grant_create({ cell_id, level: 'viewer', principal }))).toBe(
      'cell_grant_principal_is_owner',
    )
  })

  it('undeleted: manages again immediately', async () => {
    const { owner, cell_id } = await household()
    await remove(owner)
    await undelete(owner)
    expect(await tiers(await signIn(owner), cell_id)).toEqual(['ok', 'ok', 'ok'])
  })

  it('one removed actor of a living account: like a soft-deleted owner', async () => {
    const { owner, editor, cell_id } = await household()
    const second = await test.actor(owner.id, 'second')
    await test.service.operations.removeActor({ actor_id: owner.actor_id }, via)
    expect(await reasonOf(owner.client.cell_get({ id: cell_id, acting: second }))).toBe(none)
    expect(await reasonOf(owner.client.cell_get({ id: cell_id, acting: owner.actor_id }))).toBe(
      'actor_not_on_account',
    )
    expect(await tiers(editor.client, cell_id)).toEqual(['ok', 'ok', none])
  })

  it('purged: the cells become system cells, nothing else changes, and editors only view', async () => {
    const { owner, viewer, editor, cell_id, open } = await household()
    await fieldRow(test, cell_id, 'open', open)
    await itemRow(test, open, '1', cell_id)
    await owner.client.cell_update({ cell_id, data: { last: 1 } })
    const before = (await root.client.cell_get({ id: cell_id })).cell
    const log = await root.client.cell_audit_list({ cell_id })
    await purge(owner)
    const after = await root.client.cell_get({ id: cell_id })
    expect(after.cell).toEqual({ ...before, created_by: null, updated_by: null })
    expect([after.fields.length, (await root.client.cell_get({ id: open })).items.length]).toEqual([1, 1])
    expect((await root.client.cell_audit_list({ cell_id })).events).toEqual(log.events)
    expect(log.events[0]?.actor_id).toBe(owner.actor_id)
    for (const { client } of [viewer, editor])
      expect(await tiers(client, cell_id)).toEqual(['ok', none, none])
    expect(await editor.client.cell_get({ id: cell_id })).toMatchObject({ can_edit: false, can_grant: false })
    const { grants } = await root.client.cell_grant_list({ cell_id })
    expect(grants.map(({ actor_id, granted_by }) => [actor_id, granted_by])).toEqual([
      [viewer.actor_id, null],
      [editor.actor_id, null],
    ])
    const { actor_id } = await test.account()
    const given = await root.client.cell_grant_create({ cell_id, level: 'editor', principal: { actor_id } })
    expect(given.grant.actor_id).toBe(actor_id)
  })

  it('of thousands of cells, purged while their editors write: no failure, no partial state', async () => {
    const { owner, editor } = await household()
    const { db } = test.service.app
    await db.run(sql`
      with made as (
        insert into cell (data, data_bytes, created_by)
        select '{}', 2, ${owner.actor_id}::uuid from generate_series(1, 3000) returning id, created_at
      )
      insert into cell_grant (cell_id, level, actor_id, cell_created_at)
      select id, 'editor', ${editor.actor_id}::uuid, created_at from made`)
    const some = await db.rows<{ id: string }>(sql`
      select id from cell where created_by = ${owner.actor_id} order by random() limit 40`)
    const [outcomes] = await Promise.all([
      Promise.all(some.map(({ id }) => edits(editor.client, id))),
      purge(owner),
    ])
    for (const outcome of outcomes) expect(['ok', none, 'service_unavailable']).toContain(outcome)
    const left = await db.rows(sql`select from cell where created_by = ${owner.actor_id}`)
    expect(left).toEqual([])
    for (const { id } of some.slice(0, 5)) expect(await edits(editor.client, id)).toBe(none)
  })
})

describe('a grantee', () => {
  it('soft-deleted keeps the row, without effect until the undelete', async () => {
    const { owner, editor, cell_id } = await household()
    await remove(editor)
    expect(await reasonOf(editor.client.cell_get({ id: cell_id }))).toBe('cell_not_found')
    expect((await owner.client.cell_grant_list({ cell_id })).grants).toHaveLength(2)
    await undelete(editor)
    expect(await edits(await signIn(editor), cell_id)).toBe('ok')
  })

  it('purged: its grants are gone, those of roles stay; a new account of the same name gets none', async () => {
    const { owner, editor, cell_id } = await household()
    const principal = { role: 'team' }
    await owner.client.cell_grant_create({ cell_id, level: 'viewer', principal })
    await test.roleGrant({ actor_id: editor.actor_id, role: 'team' })
    await purge(editor)
    const { grants } = await owner.client.cell_grant_list({ cell_id })
    expect(grants.map(({ actor_id, role }) => actor_id === null && role)).toEqual([false, 'team'])
    const again = await test.account({ username: editor.username })
    expect(await tiers(again.client, cell_id)).toEqual([none, none, none])
  })

  it('by a role loses access with the role at the next statement, and the cell grant stays', async () => {
    const { owner, cell_id } = await household()
    const member = await test.account({ roles: ['team'] })
    await owner.client.cell_grant_create({ cell_id, level: 'editor', principal: { role: 'team' } })
    expect(await edits(member.client, cell_id)).toBe('ok')
    await endRole(test, member.actor_id, 'team')
    expect(await tiers(member.client, cell_id)).toEqual([none, none, none])
    expect((await owner.client.cell_grant_list({ cell_id })).grants).toHaveLength(3)
    await test.roleGrant({ actor_id: member.actor_id, role: 'team' })
    expect(await edits(member.client, cell_id)).toBe('ok')
  })
})

it('a role that leaves the registry keeps matching existing grants, and gets no new ones', async () => {
  const { owner, cell_id } = await household()
  const member = await test.account({ roles: ['team'] })
  const principal = { role: 'team' }
  await owner.client.cell_grant_create({ cell_id, level: 'viewer', principal })
  const node = await testService({ database_url: test.databaseUrl })
  const [members, owners] = [node.client(member.cookie), node.client(owner.cookie)]
  expect(await views(members, cell_id)).toBe('ok')
  expect(await reasonOf(owners.cell_grant_create({ cell_id, level: 'editor', principal }))).toBe(
    'cell_grant_unknown_role',
  )
  const { grants } = await owners.cell_grant_list({ cell_id })
  const grant_id = grants.find(({ role }) => role === 'team')?.id as string
  expect(await reasonOf(owners.cell_grant_revoke({ grant_id }))).toBe('ok')
  expect(await views(members, cell_id)).toBe(none)
  await node.close()
})
