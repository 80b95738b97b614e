import { randomUUID } from 'node:crypto'
import { describe, expect, test as it } from 'vitest'
import { cellRow, itemRow } from '../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'

const test = await serviceForFile()
const [ada, bob, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])

const made = async (by = ada) => (await by.client.cell_create({ data: {} })).cell.id
const timeline = async (cell_id: string, by = ada) => (await by.client.cell_audit_list({ cell_id })).events
const types = async (cell_id: string, by = ada) =>
  (await timeline(cell_id, by)).map(({ event_type }) => event_type)
const refused = (cell_id: string, by: TestAccount) => reasonOf(by.client.cell_audit_list({ cell_id }))

describe('the timeline', () => {
  it('includes the caller’s own latest write, newest first, each with exactly six keys', async () => {
    const cell_id = await made()
    const { grant } = await root.client.cell_grant_create({
      cell_id,
      level: 'editor',
      principal: { actor_id: bob.actor_id },
    })
    await bob.client.cell_update({ cell_id, data: { secret: 1 } })
    await ada.client.cell_grant_revoke({ grant_id: grant.id })
    const events = await timeline(cell_id)
    expect(events.map(({ event_type, actor_id }) => [event_type, actor_id])).toEqual([
      ['cell_grant_revoke', ada.actor_id],
      ['cell_update', bob.actor_id],
      ['cell_grant_create', root.actor_id],
      ['cell_create', ada.actor_id],
    ])
    const seqs = events.map(({ seq }) => seq)
    expect(seqs).toEqual([...seqs].sort((a, b) => b - a))
    for (const event of events) {
      expect(Object.keys(event).sort()).toEqual(
        ['actor_id', 'created_at', 'event_type', 'id', 'outcome', 'seq'].sort(),
      )
      expect(event).toMatchObject({ outcome: 'success', created_at: expect.stringMatching(/\.\d{3}Z$/) })
    }
  })

  it('is empty for a cell that no event names', async () => {
    expect(await timeline(await cellRow(test, { created_by: ada.actor_id }))).toEqual([])
  })

  it('holds every event that names the cell under one of the six keys, failures too, and no other', async () => {
    const cell_id = await cellRow(test, { created_by: ada.actor_id })
    const keys = ['cell_id', 'source_id', 'parent_id', 'child_id', 'target_id', 'new_id', 'other_id']
    for (const key of keys)
      await test.service.app.audit.failure({
        event_type: `own.${key}`,
        outcome: 'failure',
        actor_id: null,
        account_id: null,
        target_actor_id: null,
        target_account_id: null,
        ip: null,
        metadata: { [key]: cell_id, nested: { cell_id: randomUUID() } },
      })
    const events = await timeline(cell_id)
    expect(events.map(({ event_type }) => event_type)).toEqual(
      ['new_id', 'target_id', 'child_id', 'parent_id', 'source_id', 'cell_id'].map((key) => `own.${key}`),
    )
    expect(events[0]).toMatchObject({ outcome: 'failure', actor_id: null })
  })

  it('has only the newest fifty', async () => {
    const cell_id = await made()
    for (let n = 1; n <= 51; n++) await ada.client.cell_update({ cell_id, data: { n } })
    const events = await timeline(cell_id)
    expect(events).toHaveLength(50)
    expect(events.every(({ event_type }) => event_type === 'cell_update')).toBe(true)
  })

  it('a deep clone is on the timelines of every new cell and of the source, and on no others', async () => {
    const [root_id, child] = [await made(), await made()]
    await itemRow(test, root_id, 'a', child)
    const { cell } = await ada.client.cell_clone({ source_id: root_id, deep: true })
    const { items } = await ada.client.cell_get({ id: cell.id })
    expect(await types(cell.id)).toEqual(['cell_clone'])
    expect(await types(items[0]?.child_id as string)).toEqual(['cell_clone'])
    expect(await types(root_id)).toEqual(['cell_clone', 'cell_create'])
    expect(await types(child)).toEqual(['cell_create'])
  })
})

it('the timeline of a deleted cell is hidden from its owner, but not from admins; other things have none', async () => {
  const cell_id = await made()
  await ada.client.cell_delete({ cell_id })
  expect(await refused(cell_id, ada)).toBe('cell_not_found')
  expect(await types(cell_id, root)).toEqual(['cell_delete', 'cell_create'])
  for (const id of [randomUUID(), ada.actor_id]) expect(await refused(id, root)).toBe('cell_not_found')
})

it('for a cell with few events among very many, the others are not read', async () => {
  const cell_id = await made()
  await test.service.app.db.run(sql`
    insert into audit_inbox (event_type, outcome, cell_ids)
    select 'many', 'success', array[gen_random_uuid()] from generate_series(1, 20000)`)
  await timeline(cell_id)
  await test.service.app.db.run(sql`analyze audit_log, audit_cell`)
  expect(await types(cell_id)).toEqual(['cell_create'])
})
