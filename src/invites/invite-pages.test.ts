import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from '../db/db.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'

let test: TestService
let admin: TestAccount
beforeAll(async () => {
  test = await testService()
  admin = await test.account({ roles: ['admin'] })
  // All of one millisecond, so that only the ids tell them apart.
  await run`
    insert into invite (username, created_at)
    select 'guest' || n, '2026-01-02T03:04:05.678Z' from generate_series(1, 300) n`
})
afterAll(() => test.close())

const run = (...query: Parameters<typeof sql>) => test.service.app.db.run(sql(...query))
const inOrder = async () =>
  (
    await test.service.app.db.rows<{ id: string }>(
      sql`select id from invite order by created_at desc, id desc`,
    )
  ).map(({ id }) => id)

async function walk(limit: number, between: () => Promise<unknown> = async () => {}) {
  const ids: string[] = []
  const sizes: number[] = []
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<typeof admin.client.invite_list>> = await admin.client.invite_list({
      limit,
      cursor,
    })
    ids.push(...page.invites.map(({ id }) => id))
    sizes.push(page.invites.length)
    cursor = page.next_cursor
    if (cursor) await between()
  } while (cursor)
  return { ids, sizes }
}

describe('the pages of invite_list', () => {
  it.each([
    [7, 43],
    [200, 2],
  ])('of %i rows show each invite once, newest first', async (limit, pages) => {
    const { ids, sizes } = await walk(limit)
    expect(ids).toEqual(await inOrder())
    expect(sizes).toHaveLength(pages)
  })

  it('end without a cursor where the last one is exactly full', async () => {
    expect((await walk(100)).sizes).toEqual([100, 100, 100])
  })

  it('have 50 rows where nothing, null or only a cursor asks', async () => {
    const first = await admin.client.invite_list()
    expect(await admin.client.invite_list({ limit: null, cursor: null })).toEqual(first)
    const second = await admin.client.invite_list({ cursor: first.next_cursor })
    expect([first.invites.length, second.invites.length]).toEqual([50, 50])
  })

  it('lose and repeat no untouched row while others come and go, the row of the cursor included', async () => {
    const before = await inOrder()
    const touched = new Set<string>()
    const { ids } = await walk(20, async () => {
      await run`insert into invite (username) values ('new' || gen_random_uuid())`
      const gone = before.filter((id) => !touched.has(id))
      for (const id of [gone[19 + touched.size], gone.at(-1)]) {
        if (id === undefined) continue
        touched.add(id)
        await run`delete from invite where id = ${id}::uuid`
      }
    })
    expect(new Set(ids).size).toBe(ids.length)
    const untouched = before.filter((id) => !touched.has(id))
    expect(ids.filter((id) => !touched.has(id))).toEqual(untouched)
  })

  it.each([
    ['limit 0', { limit: 0 }, 'limit', 'too_small'],
    ['limit 201', { limit: 201 }, 'limit', 'too_big'],
    ['an offset', { offset: 1 }, 'offset', 'unrecognized_keys'],
    ['no cursor at all', { cursor: '' }, 'cursor', 'invalid_cursor'],
  ])('refuse %s', async (_what, input, key, code) => {
    await expect(admin.client.invite_list(input as { limit: number })).rejects.toMatchObject({
      reason: 'invalid_params',
      data: { issues: [{ path: [key], code }] },
    })
  })

  it('refuse the cursor of another list and of another admin', async () => {
    const other = await test.account({ roles: ['admin'] })
    const foreign = [
      (await admin.client.admin_account_list({ limit: 1 })).next_cursor,
      (await other.client.invite_list({ limit: 1 })).next_cursor,
    ]
    for (const cursor of foreign) {
      expect(cursor).toEqual(expect.any(String))
      await expect(admin.client.invite_list({ cursor })).rejects.toMatchObject({
        data: { issues: [{ path: ['cursor'], code: 'invalid_cursor' }] },
      })
    }
  })
})
