import { describe, expect, test as it } from 'vitest'
import { cellRow, fieldRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { call, rpc } from '../../../test/helpers/http.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { scenario } from '../../testing/index.ts'

/** `cell_field_set` and `cell_item_insert`, `cell_field_delete` and `cell_item_delete`. */

const missing = '11111111-1111-4111-8111-111111111111'
const old = '2026-01-01T00:00:00.000Z'
const gone = { visibility: 'public', deleted_at: old } as const
const test = await serviceForFile()
const { db } = test.service.app
const [ada, bob] = await Promise.all([test.account(), test.account()])
const near = await cellRow(test, { created_by: ada.actor_id })
const far = await cellRow(test, { created_by: bob.actor_id, visibility: 'public' })

type Edge = Record<string, string> & { created_at: string }
type Deleted = { ok: boolean; deleted: boolean }
const send = (method: string, input: object) =>
  (ada.client as unknown as Record<string, (input: object) => unknown>)[method]?.(input)
const fields = {
  relation: 'field',
  add: 'cell_field_set',
  remove: 'cell_field_delete',
  row: fieldRow,
  input: (source_id: unknown, name: unknown, target_id?: unknown) => ({ source_id, name, target_id }),
  list: async () => (await ada.client.cell_field_list({ source_id: near, limit: 500 })).fields,
  valid: ['a', 'a_', `a${'b'.repeat(63)}`, 'a0_9z', 'constructor'],
  wrong: [`a${'b'.repeat(64)}`, '_a', '1a', 'A', 'aB', 'a-b', 'a b', 'é', '', 'a\n', 'a\0', null, undefined],
  other: { position: '1' },
} as const
const items = {
  relation: 'item',
  add: 'cell_item_insert',
  remove: 'cell_item_delete',
  row: itemRow,
  input: (parent_id: unknown, position: unknown, child_id?: unknown) => ({ parent_id, position, child_id }),
  list: async () => (await ada.client.cell_item_list({ parent_id: near, limit: 500 })).items,
  valid: ['0', '00', 'a0Z9', 'x'.repeat(200), 'constructor'],
  wrong: ['x'.repeat(201), '', 'é', '-', 'a b', 'a\n', '\0', 1, null, undefined],
  other: { name: 'a' },
} as const

describe.each([fields, items])('$add and $remove', (kind) => {
  const { relation, input, list } = kind
  const put = async (sent: object) => ((await send(kind.add, sent)) as Record<string, Edge>)[relation] as Edge
  const add = (key: string, to = far, from = near) => put(input(from, key, to))
  const remove = (key: string, from = near) => send(kind.remove, input(from, key)) as Promise<Deleted>
  const stored = async (key: string) => (await list()).find((edge) => Object.values(edge).includes(key))
  const plant = async (key: string, to: string) => {
    await kind.row(test, near, key, to)
    await db.run(sql`
      update ${sql.raw(`cell_${relation}`)} set created_at = ${old}
      where ${sql.raw(relation === 'field' ? 'source_id' : 'parent_id')} = ${near}
        and ${sql.raw(relation === 'field' ? 'name' : 'position')} = ${key}`)
  }
  const audited = (event_type: string, key: string, to = far) => ({
    audit: [{ event_type, actor_id: ada.actor_id, account_id: ada.id, metadata: input(near, key, to) }],
  })

  it('stores and returns the edge, and leaves one audit row in both timelines', async () => {
    const sent = input(near.toUpperCase(), 'first', far.toUpperCase())
    const edge = await scenario(test, () => put(sent), audited(kind.add, 'first'))
    const created_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(edge).toEqual({ ...input(near, 'first', far), created_at })
    expect(await stored('first')).toEqual(edge)
    const row = await db.one<{ cell_ids: string[] }>(sql`
      select cell_ids from audit_entries() order by written desc limit 1`)
    expect(row.cell_ids.toSorted()).toEqual([near, far].toSorted())
  })

  it('its audit rows have the same keys for a caller that says which actor acts', async () => {
    const acting = { acting: ada.actor_id }
    await scenario(test, () => put({ ...input(near, 'by', far), ...acting }), audited(kind.add, 'by'))
    const gone = () => send(kind.remove, { ...input(near, 'by'), ...acting }) as Promise<Deleted>
    await scenario(test, gone, audited(kind.remove, 'by'))
  })

  it('leaves both cells unchanged, version and updated_at included', async () => {
    const before = await ada.client.cell_list({ ids: [near, far] })
    await add('untouched')
    expect(await ada.client.cell_list({ ids: [near, far] })).toEqual(before)
  })

  it('a cell may lead to itself, two to one another, and one to a cell twice; keys are per cell', async () => {
    const other = await cellRow(test, { created_by: ada.actor_id })
    await add('me', near)
    await add('there', other)
    await add('again', other)
    expect(await add('there', near, other)).toMatchObject(input(other, 'there', near))
    for (const [key, to] of [
      ['me', near],
      ['there', other],
      ['again', other],
    ] as const)
      expect(await stored(key)).toMatchObject(input(near, key, to))
  })

  it.each(kind.valid.map((key) => [key]))('the key %s is valid', async (key) => {
    expect(await add(key)).toMatchObject(input(near, key, far))
    expect(await stored(key)).toMatchObject(input(near, key, far))
  })

  it.each([
    ...kind.wrong.map((key) => input(near, key, far)),
    ...[null, undefined, 'x'].flatMap((id) => [input(id, 'a', far), input(near, 'a', id)]),
    { ...input(near, 'a', far), ...kind.other },
  ])('%j is refused', async (wrong) => {
    await scenario(test, () => put(wrong), { reason: 'invalid_params' })
  })

  it('over an edge to a deleted cell it is written, with a new time', async () => {
    const { cell } = await ada.client.cell_create({ data: {} })
    await plant('over', cell.id)
    await ada.client.cell_delete({ cell_id: cell.id })
    const edge = await scenario(test, () => add('over'), audited(kind.add, 'over'))
    expect(edge).toMatchObject(input(near, 'over', far))
    expect(edge.created_at > old).toBe(true)
    expect(await stored('over')).toEqual(edge)
  })

  it('a deletion leaves one audit row; a second call finds nothing and leaves none', async () => {
    for (const key of ['d1', 'd11']) await kind.row(test, near, key, near)
    const answer = await scenario(test, () => remove('d1'), audited(kind.remove, 'd1', near))
    expect(answer).toEqual({ ok: true, deleted: true })
    expect([await stored('d1'), await stored('d11')]).toEqual([undefined, expect.anything()])
    expect(await scenario(test, () => remove('d1'))).toEqual({ ok: true, deleted: false })
  })

  it('a deletion works if the caller cannot see the far cell, and the response does not name it', async () => {
    const hidden = await cellRow(test, { created_by: bob.actor_id })
    await kind.row(test, near, 'hidden', hidden)
    const answer = await scenario(test, () => remove('hidden'), audited(kind.remove, 'hidden', hidden))
    expect(answer).toEqual({ ok: true, deleted: true })
    const left = sql`select from ${sql.raw(`cell_${relation}`)} e where e::text like ${`%${hidden}%`}`
    expect(await db.rows(left)).toEqual([])
  })

  it('for a deletion, an edge that leads to a deleted cell does not exist', async () => {
    await kind.row(test, near, 'dead', await cellRow(test, gone))
    const { cell } = await ada.client.cell_create({ data: {} })
    await add('dying', cell.id)
    await ada.client.cell_delete({ cell_id: cell.id })
    for (const key of ['dead', 'dying'])
      expect(await scenario(test, () => remove(key))).toEqual({ ok: true, deleted: false })
  })

  it.each([{}, input(undefined, 'a'), input('x', 'a'), input(missing, '-'), input(missing, 'a', null)])(
    'a deletion of %j is refused',
    async (wrong) => {
      expect(await reasonOf(send(kind.remove, wrong) as Promise<unknown>)).toBe('invalid_params')
    },
  )
})

const set = async (name: string, target_id = far) =>
  (await ada.client.cell_field_set({ source_id: near, name, target_id })).field

describe('a field that is set already', () => {
  const plant = async (name: string, to: string) => {
    await fieldRow(test, near, name, to)
    await db.run(sql`update cell_field set created_at = ${old} where source_id = ${near} and name = ${name}`)
  }
  it('to the same target: nothing is written, the stored field is returned', async () => {
    await plant('same', far)
    expect(await scenario(test, () => set('same'))).toEqual({
      ...fields.input(near, 'same', far),
      created_at: old,
    })
  })

  it.each([
    ['another', () => near],
    ['hidden', () => cellRow(test, {})],
  ] as const)('to %s cell: it is replaced, with a new time', async (what, from) => {
    const name = `was_${what}`
    await plant(name, await from())
    const metadata = fields.input(near, name, far)
    const field = await scenario(test, () => set(name), {
      audit: [{ event_type: 'cell_field_set', metadata }],
    })
    expect(field).toMatchObject(metadata)
    expect(field.created_at > old).toBe(true)
  })
})

it('a position that any live item holds is taken, even for the same child; nothing changes', async () => {
  const hidden = await cellRow(test, { created_by: bob.actor_id })
  for (const [position, holder] of Object.entries({ t1: far, t2: near, t3: hidden })) {
    await itemRow(test, near, position, holder)
    const sent = call('cell_item_insert', items.input(near, position, far))
    const reply = await scenario(test, () => rpc(test.url, sent, { cookie: ada.cookie }))
    expect([reply.status, reply.json]).toMatchObject([
      409,
      { error: { code: -32004, data: { reason: 'cell_item_position_taken' } } },
    ])
    expect(reply.text).not.toContain(holder)
    const row = await db.one(
      sql`select child_id from cell_item where parent_id = ${near} and position = ${position}`,
    )
    expect(row).toEqual({ child_id: holder })
  }
})

it('a child that the caller may not view is not found at a taken position either', async () => {
  const [hidden, deleted] = [await cellRow(test, { created_by: bob.actor_id }), await cellRow(test, gone)]
  await itemRow(test, near, 'held', far)
  for (const child of [hidden, deleted, missing])
    await scenario(test, () => send(items.add, items.input(near, 'held', child)) as Promise<unknown>, {
      reason: 'cell_not_found',
    })
})
