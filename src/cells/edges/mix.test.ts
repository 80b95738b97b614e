import { expect, test as it } from 'vitest'
import { cellRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import type { TestAccount } from '../../testing/index.ts'

const test = await serviceForFile()
const accounts = await Promise.all([test.account(), test.account(), test.account({ roles: ['admin'] })])

type Event = { event_type: string; metadata: Record<string, string> }

/** The edges that result from replaying the audit rows; fails on a row that does not fit the ones before. */
function replayed(events: Event[], isDeleted: (id: string | undefined) => boolean): Map<string, string> {
  const places = new Map<string, string>()
  const put = (place: string, far: string) => {
    const held = places.get(place)
    expect(held === undefined || isDeleted(held), `${place} was free`).toBe(true)
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

it('any mix of writes ends in known refusals and in the edges that the audit rows describe', async () => {
  const { db } = test.service.app
  const owner = accounts[0]?.actor_id as string
  const parents = await Promise.all(
    [1, 2].map(() => cellRow(test, { created_by: owner, visibility: 'public' })),
  )
  for (const id of parents) await test.cellGrant(id, 'editor', { actor_id: accounts[1]?.actor_id as string })
  const far = await Promise.all(
    Array.from({ length: 40 }, () => cellRow(test, { created_by: owner, visibility: 'public' })),
  )
  let seed = 11
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((seed / 2_147_483_648) * below)
  }
  const one = <T>(all: readonly T[]): T => all[random(all.length)] as T
  const position = () => `p${random(5)}`
  const name = () => `f${random(3)}`
  const calls: ((account: TestAccount, id: string) => Promise<unknown>)[] = [
    ({ client }, id) => client.cell_item_insert({ parent_id: id, child_id: one(far), position: position() }),
    ({ client }, id) => client.cell_item_insert({ parent_id: id, child_id: one(far), position: position() }),
    ({ client }, id) =>
      client.cell_item_move({ parent_id: id, position: position(), new_position: position() }),
    ({ client }, id) => client.cell_item_delete({ parent_id: id, position: position() }),
    ({ client }, id) => client.cell_field_set({ source_id: id, name: name(), target_id: one(far) }),
    ({ client }, id) => client.cell_field_delete({ source_id: id, name: name() }),
  ]
  const known = ['ok', 'cell_not_found', 'cell_item_position_taken']
  const worker = async () => {
    for (let i = 0; i < 40; i++) {
      const doomed = random(20) === 0 ? accounts[0]?.client.cell_delete({ cell_id: one(far) }) : undefined
      const [reason] = await Promise.all([
        reasonOf(one(calls)(one(accounts), one(parents))),
        doomed && reasonOf(doomed),
      ])
      expect(known).toContain(reason)
    }
  }
  await Promise.all(Array.from({ length: 16 }, worker))

  const gone = await db.rows<{ id: string }>(sql`select id from cell where deleted_at is not null`)
  const deleted = new Set(gone.map(({ id }) => id))
  const events = await db.rows<Event>(sql`
    select event_type, metadata from audit_log where outcome = 'success' order by written`)
  const stored = await db.rows<{ place: string; far: string }>(sql`
    select source_id || '.' || name as place, target_id as far from cell_field
    union all select parent_id || '/' || position, child_id from cell_item`)
  expect(deleted.size).toBeGreaterThan(5)
  expect(events.length).toBeGreaterThan(100)
  expect(new Map(stored.map(({ place, far }) => [place, far]))).toEqual(
    replayed(events, (id) => id !== undefined && deleted.has(id)),
  )
})
