import { describe, expect, test as it } from 'vitest'
import { cellRow, fieldRow } from '../../../test/helpers/cell-rows.ts'
import { rpc } from '../../../test/helpers/http.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { scenario } from '../../testing/index.ts'

const missing = '11111111-1111-4111-8111-111111111111'
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

describe('who may', () => {
  it('an editor of the source that may view the target; a viewer of the source may not', async () => {
    const [editor, viewer] = await Promise.all([test.account(), test.account()])
    const from = await cellRow(test, { created_by: ada.actor_id, visibility: 'public' })
    await test.cellGrant(from, 'editor', { actor_id: editor.actor_id })
    await test.cellGrant(from, 'viewer', { actor_id: viewer.actor_id })
    const reasons = await Promise.all(
      [editor, viewer, bob].map(({ client }) =>
        reasonOf(client.cell_field_set({ source_id: from, name: 'f', target_id })),
      ),
    )
    expect(reasons).toEqual(['ok', 'cell_not_found', 'cell_not_found'])
  })

  it('a grant of editor on a cell without an owner gives no right to edit', async () => {
    const system = await cellRow(test, { visibility: 'public' })
    await test.cellGrant(system, 'editor', { actor_id: ada.actor_id })
    expect(await reasonOf(set('f', target_id, system))).toBe('cell_not_found')
    expect(await reasonOf(set('to_system', system))).toBe('ok')
  })

  it('a hidden, deleted or missing cell on either side gets the same bytes, and nothing is written', async () => {
    const hidden = await cellRow(test, { created_by: bob.actor_id })
    const deleted = await cellRow(test, { created_by: ada.actor_id, deleted_at: '2026-01-01T00:00:00Z' })
    const bare = async (from: string, to: string) => {
      const params = { source_id: from, name: 'gone', target_id: to }
      const { status, headers, text } = await scenario(test, () =>
        rpc(
          test.url,
          { jsonrpc: '2.0', id: 1, method: 'cell_field_set', params },
          { 'x-request-id': 'same', cookie: ada.cookie },
        ),
      )
      const { date: _, ...rest } = headers
      return { status, rest, text }
    }
    const wanted = await bare(source_id, missing)
    expect(wanted).toMatchObject({ status: 404, text: expect.stringContaining('cell_not_found') })
    for (const to of [hidden, deleted, ada.actor_id, ada.id])
      expect(await bare(source_id, to)).toEqual(wanted)
    for (const from of [missing, hidden, deleted, target_id])
      expect(await bare(from, target_id)).toEqual(wanted)
    expect(await stored('gone')).toBeUndefined()
  })
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
