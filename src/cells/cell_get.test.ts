import { describe, expect, test as it } from 'vitest'
import { forgedCookie } from '../../test/helpers/callers.ts'
import { cellRow, endCellGrant, endRole, itemRow } from '../../test/helpers/cell-rows.ts'
import { send } from '../../test/helpers/http.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount, testService } from '../testing/index.ts'

const test = await serviceForFile()
const [ada, bob] = await Promise.all([test.account(), test.account()])

it('returns the cell with its edges and the rights of the caller, and leaves no audit row', async () => {
  const { cell } = await ada.client.cell_create({ data: { a: 1 }, kind: 'k' })
  const answer = await scenario(test, () => ada.client.cell_get({ id: cell.id.toUpperCase() }))
  expect(answer).toEqual({
    cell,
    fields: [],
    fields_truncated: false,
    items: [],
    items_truncated: false,
    can_edit: true,
    can_grant: true,
  })
})

it('finds by path, byte for byte, and by GET', async () => {
  const id = await cellRow(test, { path: 'Café', visibility: 'public' })
  expect((await bob.client.cell_get({ path: 'Café' })).cell.id).toBe(id)
  for (const path of ['café', 'Cafe\u0301', 'Café ', 'Caf%'])
    expect(await reasonOf(bob.client.cell_get({ path }))).toBe('cell_not_found')
  const params = encodeURIComponent(JSON.stringify({ path: 'Café' }))
  const { json } = await send(test.url, { path: `/api/rpc?method=cell_get&id=1&params=${params}` })
  expect(json).toMatchObject({ result: { cell: { id } } })
})

it.each<[object, string]>([
  [{}, 'cell_get_requires_id_or_path'],
  [{ id: '11111111-1111-4111-8111-111111111111', path: 'x' }, 'cell_get_requires_id_or_path'],
  [{ id: null }, 'invalid_params'],
  [{ path: null }, 'invalid_params'],
  [{ id: 'x', path: 'x' }, 'invalid_params'],
  [{ id: '11111111-1111-4111-8111-111111111111', fields: true }, 'invalid_params'],
  [{ path: '' }, 'invalid_params'],
  [{ path: 'x'.repeat(257) }, 'invalid_params'],
  [{ path: '\0' }, 'invalid_params'],
])('%j is refused: %s', async (input, reason) => {
  expect(await reasonOf(test.client().cell_get(input))).toBe(reason)
})

describe('the actor', () => {
  it('is resolved strictly: with several and none named there is no fallback to public cells', async () => {
    const both = await test.account()
    const second = await test.actor(both.id, 'second')
    const { cell } = await both.client.cell_create({ data: {}, acting: both.actor_id })
    const open = await cellRow(test, { visibility: 'public' })
    expect(await reasonOf(both.client.cell_get({ id: open }))).toBe('actor_required')
    expect(await reasonOf(both.client.cell_get({ id: cell.id, acting: second }))).toBe('cell_not_found')
    expect((await both.client.cell_get({ id: cell.id, acting: both.actor_id })).cell.id).toBe(cell.id)
  })

  it('is anonymous without a valid session', async () => {
    const { cell } = await ada.client.cell_create({ data: {}, visibility: 'public' })
    expect(await ada.client.cell_get({ id: cell.id })).toMatchObject({ can_edit: true, can_grant: true })
    for (const cookie of [forgedCookie(ada), 'svc_session=forged']) {
      const answer = await test.client(cookie).cell_get({ id: cell.id })
      expect(answer).toMatchObject({ can_edit: false, can_grant: false })
    }
  })
})

describe('what the caller may do', () => {
  const flags = async (client: TestAccount['client'], id: string) => {
    const { can_edit, can_grant } = await client.cell_get({ id })
    return { can_edit, can_grant }
  }
  it('ends with the grant, at the next call', async () => {
    const { cell } = await ada.client.cell_create({ data: {} })
    const holder = await test.account()
    await test.cellGrant(cell.id, 'editor', { actor_id: holder.actor_id })
    await test.cellGrant(cell.id, 'viewer', { role: 'team', scope_id: null })
    await test.roleGrant({ actor_id: holder.actor_id, role: 'team' })
    expect(await flags(holder.client, cell.id)).toEqual({ can_edit: true, can_grant: false })
    await endCellGrant(test, cell.id, holder.actor_id)
    expect(await flags(holder.client, cell.id)).toEqual({ can_edit: false, can_grant: false })
    await endRole(test, holder.actor_id, 'team')
    expect(await reasonOf(holder.client.cell_get({ id: cell.id }))).toBe('cell_not_found')
  })

  it('ends when a role grant expires', async () => {
    const { cell } = await ada.client.cell_create({ data: {} })
    const holder = await test.account()
    await test.cellGrant(cell.id, 'viewer', { role: 'guest', scope_id: null })
    await test.roleGrant({ actor_id: holder.actor_id, role: 'guest', expires_at: '2099-01-01T00:00:00Z' })
    expect(await flags(holder.client, cell.id)).toEqual({ can_edit: false, can_grant: false })
    await test.service.app.db.run(sql`
      update role_grant set expires_at = date_trunc('milliseconds', now()) where actor_id = ${holder.actor_id}`)
    expect(await reasonOf(holder.client.cell_get({ id: cell.id }))).toBe('cell_not_found')
  })
})

describe('edges', () => {
  const open = { visibility: 'public' } as const

  it('are cut at 500 after hidden ones are removed, and the flag is set only for a visible 501st', async () => {
    const parent = await cellRow(test, open)
    const [seen, hidden] = [await cellRow(test, open), await cellRow(test, {})]
    await test.service.app.db.run(sql`
      insert into cell_item (parent_id, position, child_id)
      select ${parent}::uuid, '0' || lpad(i::text, 6, '0'), ${hidden}::uuid from generate_series(1, 10000) i
      union all select ${parent}::uuid, '1' || lpad(i::text, 6, '0'), ${seen}::uuid from generate_series(1, 500) i
      union all select ${parent}::uuid, '2' || lpad(i::text, 6, '0'), ${hidden}::uuid from generate_series(1, 10) i`)
    await test.service.app.db.run(sql`
      insert into cell_field (source_id, name, target_id)
      select ${parent}::uuid, 'f' || lpad(i::text, 6, '0'), ${seen}::uuid from generate_series(1, 501) i`)
    const answer = await test.client().cell_get({ id: parent })
    expect(answer).toMatchObject({ items_truncated: false, fields_truncated: true })
    expect([answer.items.length, answer.fields.length]).toEqual([500, 500])
    expect(answer.items[0]?.position).toBe('1000001')
    expect(answer.fields.at(-1)?.name).toBe('f000500')
    await itemRow(test, parent, '3', seen)
    await test.service.app.db.run(sql`delete from cell_field where name = 'f000300'`)
    expect(await test.client().cell_get({ id: parent })).toMatchObject({
      items: { length: 500 },
      items_truncated: true,
      fields: { length: 500 },
      fields_truncated: false,
    })
  })
})

it('anonymous reads have a budget per address; a valid session is exempt, an invalid one is not', async () => {
  const small = await testService({ limit_cell_read: '3/900' })
  const account = await small.account()
  const id = await cellRow(small, { visibility: 'public' })
  const reasons: string[] = []
  for (const client of [small.client(), account.client, small.client(forgedCookie(account)), small.client()])
    reasons.push(await reasonOf(client.cell_get({ id })))
  expect(reasons).toEqual(['ok', 'ok', 'ok', 'ok'])
  // One budget for both methods; input that is refused is not charged.
  expect(await reasonOf(small.client().cell_get({}))).toBe('cell_get_requires_id_or_path')
  expect(await reasonOf(small.client().cell_get({ id }))).toBe('rate_limited')
  expect(await reasonOf(small.client().cell_list())).toBe('rate_limited')
  expect(await reasonOf(account.client.cell_list())).toBe('ok')
  await small.close()
})
