import { describe, expect, test as it } from 'vitest'
import { cellRow, fieldRow } from '../../../test/helpers/cell-rows.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { scenario } from '../../testing/index.ts'

const test = await serviceForFile()
const [ada, bob] = await Promise.all([test.account(), test.account()])
const source_id = await cellRow(test, { created_by: ada.actor_id })
const target_id = await cellRow(test, { created_by: bob.actor_id, visibility: 'public' })

const set = (name: string, to = target_id, from = source_id) =>
  ada.client.cell_field_set({ source_id: from, name, target_id: to })
const audited = (metadata: Record<string, unknown>) => ({
  audit: [{ event_type: 'cell_field_set', actor_id: ada.actor_id, account_id: ada.id, metadata }],
})
const stored = async (name: string) =>
  (await ada.client.cell_field_list({ source_id })).fields.find((field) => field.name === name)

it('stores and returns the field, and leaves one audit row in both timelines', async () => {
  const sent = { source_id: source_id.toUpperCase(), name: 'first', target_id: target_id.toUpperCase() }
  const { field } = await scenario(
    test,
    () => ada.client.cell_field_set(sent),
    audited({ source_id, name: 'first', target_id }),
  )
  const created_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(field).toEqual({ source_id, name: 'first', target_id, created_at })
  expect(await stored('first')).toEqual(field)
  const row = await test.service.app.db.first<{ cell_ids: string[] }>(sql`
    select cell_ids from audit_log order by written desc limit 1`)
  expect(row?.cell_ids.toSorted()).toEqual([source_id, target_id].toSorted())
})

it('leaves both cells unchanged, version and updated_at included', async () => {
  const before = await ada.client.cell_list({ ids: [source_id, target_id] })
  await set('untouched')
  expect(await ada.client.cell_list({ ids: [source_id, target_id] })).toEqual(before)
})

describe('a field that is set already', () => {
  const old = '2026-01-01T00:00:00.000Z'
  const plant = async (name: string, to: string) => {
    await fieldRow(test, source_id, name, to)
    await test.service.app.db.run(sql`
      update cell_field set created_at = ${old} where source_id = ${source_id} and name = ${name}`)
  }

  it('to the same target: nothing is written, the stored field is returned', async () => {
    await plant('same', target_id)
    const { field } = await scenario(test, () => set('same'))
    expect(field.created_at).toBe(old)
    expect(await stored('same')).toEqual(field)
  })

  it('to another target: it is replaced, with a new time', async () => {
    await plant('other', target_id)
    const { field } = await scenario(
      test,
      () => set('other', source_id),
      audited({ source_id, name: 'other', target_id: source_id }),
    )
    expect(field.target_id).toBe(source_id)
    expect(field.created_at > old).toBe(true)
    expect(await stored('other')).toEqual(field)
  })

  it.each([
    ['hidden', {}],
    ['deleted', { visibility: 'public', deleted_at: '2026-01-01T00:00:00Z' }],
  ] as const)('to a %s cell: it is replaced as well', async (what, row) => {
    const name = `was_${what}`
    await plant(name, await cellRow(test, row))
    await scenario(test, () => set(name), audited({ source_id, name, target_id }))
    expect(await stored(name)).toMatchObject({ target_id })
  })
})

it('a cell may lead to itself, and two to one another', async () => {
  const other = await cellRow(test, { created_by: ada.actor_id })
  expect((await set('me', source_id)).field.target_id).toBe(source_id)
  await set('there', other)
  expect((await set('back', source_id, other)).field.target_id).toBe(source_id)
})

it.each(['a', 'a_', `a${'b'.repeat(63)}`, 'a0_9z', 'constructor'])('the name %s is valid', async (name) => {
  expect((await set(name)).field.name).toBe(name)
})

it.each<[object]>([
  [{ name: `a${'b'.repeat(64)}` }],
  [{ name: '_a' }],
  [{ name: '1a' }],
  [{ name: 'A' }],
  [{ name: 'aB' }],
  [{ name: 'a-b' }],
  [{ name: 'a b' }],
  [{ name: 'é' }],
  [{ name: '' }],
  [{ name: 'a\n' }],
  [{ name: 'a\0' }],
  [{ name: null }],
  [{ name: undefined }],
  [{ source_id: null }],
  [{ source_id: 'x' }],
  [{ target_id: undefined }],
  [{ position: '1' }],
])('%j is refused', async (wrong) => {
  const input = { source_id, name: 'a', target_id, ...wrong }
  await scenario(
    test,
    () => ada.client.cell_field_set(input as Parameters<typeof ada.client.cell_field_set>[0]),
    {
      reason: 'invalid_params',
    },
  )
})
