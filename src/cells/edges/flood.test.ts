import { describe, expect, test as it } from 'vitest'
import { cellRow, cellRows, itemRow } from '../../../test/helpers/cell-rows.ts'
import { workOf } from '../../../test/helpers/plans.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'

/** Items of one account, from a public cell to a hidden one or the other way round; many pages of them. */
const many = 30_000
/** The number of edges that one call may examine, plus one row per relation to detect that there are more. */
const examinedMax = 2 * 12_000 + 10

const test = await serviceForFile({ limit_cell_read: 'off' })
const [ada, bob] = await Promise.all([test.account(), test.account()])
const open = { visibility: 'public', created_by: ada.actor_id } as const
const [flooded, popular, seen] = [
  await cellRow(test, open),
  await cellRow(test, open),
  await cellRow(test, open),
]
const hidden = await cellRow(test, { created_by: ada.actor_id })
for (const [parent, child] of [
  [flooded, hidden],
  [hidden, popular],
])
  for (let from = 0; from < many; from += 10_000)
    await test.service.app.db.run(sql`
      insert into cell_item (parent_id, position, child_id, created_at)
      select ${parent}::uuid, 'secret' || lpad(i::text, 6, '0'), ${child}::uuid, '2026-01-01'
      from generate_series(${from + 1}::int, ${from + 10_000}::int) i`)
// With few cells, a plan would read the whole table.
await cellRows(test, 2000, { kind: sql`'other'` })
await itemRow(test, flooded, 'z', seen)
await itemRow(test, seen, 'z', popular)
for (const table of ['cell', 'cell_item']) await test.service.app.db.run(sql`analyze ${sql.raw(table)}`)

describe('a flood of hidden edges', () => {
  it('is not examined to the end by cell_get, which says that there are more', async () => {
    const work = await workOf(test.databaseUrl, async () => {
      const { items, items_truncated, fields_truncated } = await test.client().cell_get({ id: flooded })
      expect([items, items_truncated, fields_truncated]).toEqual([[], true, false])
    })
    expect(work.rows.cell_item).toBeLessThan(examinedMax)
    expect(work.rows.cell).toBeLessThan(examinedMax)
  })

  it.each([
    ['that leave a cell', () => ({ parent_id: flooded })],
    ['that lead to a cell', () => ({ child_id: popular })],
  ])('is walked %s in steps, whose cursors reveal nothing', async (_how, input) => {
    const found: string[] = []
    let cursor: string | null = null
    let steps = 0
    do {
      const work = await workOf(test.databaseUrl, async () => {
        const page = await bob.client.cell_item_list({ ...input(), cursor })
        found.push(...page.items.map(({ position }) => position))
        cursor = page.next_cursor
      })
      expect(work.rows.cell_item ?? 0).toBeLessThan(examinedMax)
      expect(Buffer.from(cursor ?? '', 'base64url').toString('latin1')).not.toContain('secret')
      steps += 1
    } while (cursor !== null)
    expect(found).toEqual(['z'])
    expect(steps).toBeGreaterThan(many / examinedMax)
  })

  it('does not hold up calls of others', async () => {
    let isOver = false
    let answered = 0
    const begun = Promise.withResolvers<void>()
    const attack = Array.from({ length: 40 }, async () => {
      const client = test.client()
      while (!isOver) {
        await client.try.cell_get({ id: flooded })
        answered += 1
        begun.resolve()
      }
    })
    await begun.promise
    const overtaken: number[] = []
    for (let call = 0; call < 30; call++) {
      const before = answered
      await bob.client.account_verify()
      overtaken.push(answered - before)
    }
    const wrote = await bob.client.cell_create({ data: {} })
    isOver = true
    await Promise.all(attack)
    expect(wrote.cell.created_by).toBe(bob.actor_id)
    // If they shared the two connections that read credentials, a call would wait for about half of the forty.
    expect(overtaken.sort((a, b) => a - b)[15]).toBeLessThan(10)
  })
})
