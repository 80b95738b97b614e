import { expect, test as it } from 'vitest'
import { cellRow } from '../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'

const test = await serviceForFile({ limit_cell_write: 'off', limit_cell_clone: 'off' })
const { db } = test.service.app
const [ada, editor, member, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])

type Event = { event_type: string; metadata: Record<string, string> }

/** The edges that result from replaying the audit rows; fails on a row that does not fit the rows before it. */
function replayed(events: Event[], deleted: Set<string>): Map<string, string> {
  const places = new Map<string, string>()
  const put = (place: string, far: string) => {
    const held = places.get(place)
    expect(held === undefined || deleted.has(held), `${place} was free`).toBe(true)
    places.set(place, far)
  }
  const take = (place: string, far: string) => {
    expect(places.get(place), `what left ${place}`).toBe(far)
    places.delete(place)
  }
  for (const { event_type, metadata } of events) {
    const { source_id, name, target_id, parent_id, position, child_id, position_old, position_new } =
      metadata as { [key: string]: string } & Record<'target_id' | 'child_id', string>
    if (event_type === 'cell_field_set') places.set(`${source_id}.${name}`, target_id)
    if (event_type === 'cell_field_delete') take(`${source_id}.${name}`, target_id)
    if (event_type === 'cell_item_insert') put(`${parent_id}/${position}`, child_id)
    if (event_type === 'cell_item_delete') take(`${parent_id}/${position}`, child_id)
    if (event_type === 'cell_item_move') {
      take(`${parent_id}/${position_old}`, child_id)
      put(`${parent_id}/${position_new}`, child_id)
    }
  }
  return places
}

it('any mix of calls ends in known refusals, and in the cells, edges and grants that the audit rows describe', async () => {
  const owned = { created_by: ada.actor_id }
  const ids = await Promise.all([1, 2, 3].map(() => cellRow(test, owned)))
  for (const id of ids) await test.cellGrant(id, 'editor', { actor_id: editor.actor_id })
  const far = await Promise.all(
    Array.from({ length: 40 }, () => cellRow(test, { ...owned, visibility: 'public' })),
  )
  let seed = 11
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((seed / 2_147_483_648) * below)
  }
  const one = <T>(all: readonly T[]): T => all[random(all.length)] as T
  const position = () => `p${random(5)}`
  const name = () => `f${random(3)}`
  const principal = { actor_id: member.actor_id }
  type Changes = Omit<Parameters<TestAccount['client']['cell_update']>[0], 'cell_id'>
  const update = ({ client }: TestAccount, cell_id: string, changes: Changes) =>
    client.cell_update({ cell_id, ...changes })
  const insert = ({ client }: TestAccount, parent_id: string) =>
    client.cell_item_insert({ parent_id, child_id: one(far), position: position() })
  /** The calls, each with the refusals that only it may get. */
  const calls: [(by: TestAccount, id: string) => Promise<unknown>, ...string[]][] = [
    [(by, id) => update(by, id, { data_patch: { [`k${random(3)}`]: random(3) } })],
    [
      (by, id) => update(by, id, { data: { n: random(3) }, expected_version: 1 + random(20) }),
      'cell_version_conflict',
    ],
    [
      (by, id) => update(by, id, { visibility: random(2) ? 'public' : 'private' }),
      'cell_visibility_manage_only',
    ],
    [
      (by, id) => update(by, id, by === root ? { path: random(3) ? `mix ${random(2)}` : null } : {}),
      'cell_path_taken',
    ],
    [insert, 'cell_item_position_taken'],
    [insert, 'cell_item_position_taken'],
    [
      ({ client }, parent_id) =>
        client.cell_item_move({ parent_id, position: position(), new_position: position() }),
      'cell_item_position_taken',
    ],
    [({ client }, parent_id) => client.cell_item_delete({ parent_id, position: position() })],
    [({ client }, source_id) => client.cell_field_set({ source_id, name: name(), target_id: one(far) })],
    [({ client }, source_id) => client.cell_field_delete({ source_id, name: name() })],
    [
      ({ client }, cell_id) =>
        client.cell_grant_create({ cell_id, level: one(['viewer', 'editor']), principal }),
    ],
    [
      async ({ client }, cell_id) => {
        const { grants } = await ada.client.cell_grant_list({ cell_id })
        const grant = grants.find(({ actor_id }) => actor_id === member.actor_id)
        if (grant) await client.cell_grant_revoke({ grant_id: grant.id })
      },
      'cell_grant_not_found',
    ],
    [({ client }, source_id) => client.cell_clone({ source_id, deep: true })],
  ]
  const worker = async () => {
    for (let i = 0; i < 50; i++) {
      const doomed = random(20) === 0 ? ada.client.cell_delete({ cell_id: one(far) }) : undefined
      const [call, ...known] = one(calls)
      const [reason] = await Promise.all([
        reasonOf(call(one([ada, editor, root, ada, editor, root, member]), one(ids))),
        doomed && reasonOf(doomed),
      ])
      expect(['ok', 'cell_not_found', ...known]).toContain(reason)
    }
  }
  await Promise.all(Array.from({ length: 16 }, worker))

  const gone = await db.rows<{ id: string }>(sql`select id from cell where deleted_at is not null`)
  const deleted = new Set(gone.map(({ id }) => id))
  const events = await db.rows<Event>(sql`
    select event_type, metadata from audit_entries() where outcome = 'success' order by written`)
  const edges = await db.rows<{ place: string; far: string }>(sql`
    select source_id || '.' || name as place, target_id as far from cell_field where source_id = any(${ids}::uuid[])
    union all
    select parent_id || '/' || position, child_id from cell_item where parent_id = any(${ids}::uuid[])`)
  expect(deleted.size).toBeGreaterThan(5)
  for (const type of ['cell_update', 'cell_item_move', 'cell_grant_revoke', 'cell_clone'])
    expect(events.filter(({ event_type }) => event_type === type).length, type).toBeGreaterThan(5)
  expect(new Map(edges.map(({ place, far }) => [place, far]))).toEqual(replayed(events, deleted))
  for (const id of ids) {
    const updates = events.filter(
      ({ event_type, metadata }) => event_type === 'cell_update' && metadata.cell_id === id,
    )
    expect((await root.client.cell_get({ id })).cell.version).toBe(1 + updates.length)
    const { grants } = await ada.client.cell_grant_list({ cell_id: id })
    expect(new Set(grants.map(({ actor_id }) => actor_id)).size).toBe(grants.length)
  }
})
