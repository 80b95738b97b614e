import { describe, expect, test as it } from 'vitest'
import { chain, children } from '../../../test/helpers/cell-graphs.ts'
import { cellRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { workOf } from '../../../test/helpers/plans.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { scenario } from '../../testing/index.ts'

const sent: string[] = []
const test = await serviceForFile({ onStatement: (text) => sent.push(text) })
const [ada, bob] = await Promise.all([test.account(), test.account()])

const made = (row: Parameters<typeof cellRow>[1] = {}) => cellRow(test, { created_by: ada.actor_id, ...row })
const clone = (source_id: string, deep = true) => ada.client.cell_clone({ source_id, deep })
/** How many statements a call sends, without the one that reads the caller. */
async function statements(call: () => Promise<unknown>): Promise<number> {
  sent.length = 0
  await call()
  return sent.filter((text) => !text.includes('auth_session')).length
}
async function refused(source_id: string, limit: string, max: number, deep = true) {
  const before = await amount()
  await scenario(
    test,
    async () => {
      const outcome = await ada.client.try.cell_clone({ source_id, deep })
      expect(outcome).toMatchObject({
        ok: false,
        error: { status: 400, reason: 'cell_clone_too_large', data: { limit, max } },
      })
    },
    { audit: [] },
  )
  expect(await amount()).toEqual(before)
}
const amount = () =>
  test.service.app.db.first(sql`
    select (select count(*) from cell) as cells, (select count(*) from cell_item) as items`)
/** Items of one parent that all lead to the same cell. */
const sameItems = (parent: string, count: number, child: string) =>
  test.service.app.db.run(sql`
    insert into cell_item (parent_id, position, child_id)
    select ${parent}::uuid, n::text, ${child}::uuid from generate_series(1, ${count}::int) n`)

describe('a clone of', () => {
  it('1000 cells takes five statements, audit row included; one cell more is too many', async () => {
    const root = await made({ data: { name: 'root' } })
    await children(test, root, 999, ada.actor_id)
    let cloned = 0
    const count = await statements(async () => {
      cloned = (await clone(root)).cloned_count
    })
    expect(cloned).toBe(1000)
    // One for the root, a walk from it and one from its children, the copy, the audit rows.
    expect(count).toBe(5)
    await itemRow(test, root, 'more', await made())
    await refused(root, 'cells', 1000)
    expect((await clone(root, false)).cloned_count).toBe(1)
  })

  it('what the caller may not view counts for nothing', async () => {
    const root = await made()
    await children(test, root, 999, ada.actor_id)
    await sameItems(root, 200, await made({ created_by: bob.actor_id }))
    for (const n of [1, 2, 3])
      await itemRow(test, root, `hidden${n}`, await made({ created_by: bob.actor_id }))
    expect((await clone(root)).cloned_count).toBe(1000)
  })

  it('cells with hidden edges beyond number ends at 50 000 edges, examined over all levels', async () => {
    const [root, hidden] = [await made(), await made({ created_by: bob.actor_id })]
    const near = await children(test, root, 4, ada.actor_id)
    for (const id of near) await sameItems(id, 10_000, hidden)
    await sameItems(root, 50_000 - 4 - 40_000, hidden)
    expect((await clone(root)).cloned_count).toBe(5)
    await itemRow(test, near[0] as string, 'more', hidden)
    await refused(root, 'edges', 50_000)
    expect((await clone(root, false)).cloned_count).toBe(1)
    for (const position of ['more1', 'more2', 'more3']) {
      const id = await made()
      await itemRow(test, root, position, id)
      await sameItems(id, 10_000, hidden)
    }
    // The second level has 70 000 edges; the first has left 40 000 of the maximum.
    const work = await workOf(test.databaseUrl, () =>
      ada.client.try.cell_clone_preview({ source_id: root, deep: true }),
    )
    expect(work.rows.cell_item).toBeLessThan(52_000)
    expect(work.rows.cell).toBeLessThan(52_000)
  })

  it('a chain of 32 steps has them all, in one statement per step; the 33rd is too far', async () => {
    const root = await made()
    await chain(test, root, 32, ada.actor_id)
    let cloned = 0
    const count = await statements(async () => {
      cloned = (await clone(root)).cloned_count
    })
    expect(cloned).toBe(33)
    expect(count).toBeLessThanOrEqual(6 + 32 + 1)
    const longer = await made()
    await itemRow(test, longer, '1', root)
    await refused(longer, 'depth', 32)
    // The shortest path to a cell counts.
    const child = (await ada.client.cell_get({ id: root })).items[0]?.child_id as string
    await itemRow(test, longer, '2', child)
    expect((await clone(longer)).cloned_count).toBe(34)
  })

  it('10 000 edges succeeds, one of 10 001 is refused, deep or not; hidden ones do not count', async () => {
    const [root, child] = [await made(), await made()]
    await sameItems(root, 10_000, child)
    await test.service.app.db.run(sql`
      insert into cell_item (parent_id, position, child_id)
      select ${root}::uuid, 'hidden' || n, ${await made({ created_by: bob.actor_id })}::uuid
      from generate_series(1, 500) n`)
    const { cell } = await clone(root, false)
    expect(await edges(cell.id)).toBe(10_000)
    const copy = await clone(root)
    expect([copy.cloned_count, await edges(copy.cell.id)]).toEqual([2, 10_000])
    await itemRow(test, child, '1', root)
    await refused(root, 'edges', 10_000)
    await itemRow(test, root, 'more', child)
    await refused(root, 'edges', 10_000, false)
  })
  const edges = async (parent: string) =>
    (
      await test.service.app.db.first<{ n: number }>(sql`
        select count(*) as n from cell_item where parent_id = ${parent}`)
    )?.n

  it('16 MiB of data succeeds; one byte more is refused', async () => {
    // 64 cells of 262 144 bytes are 16 777 216.
    const data = { a: 'x'.repeat(262_144 - 8) }
    const root = await made({ data })
    for (let n = 1; n <= 63; n++) await itemRow(test, root, `${n}`, await made({ data }))
    expect((await clone(root)).cloned_count).toBe(64)
    await itemRow(test, root, 'more', await made())
    await refused(root, 'bytes', 16_777_216)
    // The patched data of the root counts, not the stored data.
    const { cloned_count } = await ada.client.cell_clone({
      source_id: root,
      deep: true,
      with_data_patch: { a: 'x' },
    })
    expect(cloned_count).toBe(65)
  })
})

it('every clone takes few statements: a 404 one, a shallow one three, audit rows included', async () => {
  const root = await made()
  const hidden = await made({ created_by: bob.actor_id })
  for (const id of [hidden, '11111111-1111-4111-8111-111111111111'])
    for (const deep of [false, true])
      expect(await statements(() => ada.client.try.cell_clone({ source_id: id, deep }))).toBe(1)
  expect(await statements(() => clone(root, false))).toBe(4)
  expect(await statements(() => clone(root))).toBe(4)
})
