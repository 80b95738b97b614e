import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Work, workOf } from '../../test/helpers/plans.ts'
import { openPage } from '../core/page.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'

const accounts = 30_000
let test: TestService
let admin: TestAccount
beforeAll(async () => {
  test = await testService()
  admin = await test.account({ roles: ['admin'] })
  // On a connection of its own, because the service ends statements that take this long.
  const client = new pg.Client(test.databaseUrl)
  await client.connect()
  await client.query(`
    with made as (
      insert into account (username, password_hash, created_at)
      select chr(97 + i % 26) || md5(i::text), 'x', now() - interval '1 day' + i * interval '1 millisecond'
      from generate_series(1, ${accounts}) i
      returning id, username, created_at
    ), sessions as (
      insert into auth_session (id, account_id, created_at, expires_at)
      select encode(sha256(id::text::bytea), 'hex'), id, created_at, now() + interval '1 day' from made
    )
    insert into actor (account_id, name, name_key) select id, username, username from made`)
  await client.query('vacuum analyze account, actor, auth_session')
  await client.end()
})
afterAll(() => test.close())

const work = (call: () => Promise<unknown>): Promise<Work> => workOf(test.databaseUrl, call)
/** Rows read for a page of this size, plus one that tells whether more follow. */
const page = (of: Record<string, number>) => ({ scanned: [], rows: expect.objectContaining(of) })

/** The cursor after the middle account, as paging there would return it. */
async function middleCursor(): Promise<string> {
  const { app } = test.service
  const row = await app.db.first<{ created_at: string; id: string }>(sql`
    select created_at, id from account order by created_at, id offset ${sql.raw(accounts / 2)} limit 1`)
  const { created_at, id } = row as NonNullable<typeof row>
  const bound = { actor: admin.actor_id, include_deleted: false }
  return app.cursors.write(openPage(app, 'admin_account_list', bound, { limit: 1 }).binding, [created_at, id])
}

describe('among 30 000 accounts', () => {
  it('a search for one letter reads its page off the index of names, and sorts nothing else', async () => {
    expect(await work(() => admin.client.actor_search({ query: 'q' }))).toMatchObject({
      scanned: [],
      // One more than the twenty shown, and the caller's own, which decides whether it may search.
      rows: { actor: 22, account: 22 },
    })
  })

  it.each([20, 200])('a page of %i accounts costs the same at the start and in the middle', async (limit) => {
    const list = (cursor: string | null) => admin.client.admin_account_list({ limit, cursor })
    const cursor = await middleCursor()
    const [start, middle] = [await work(() => list(null)), await work(() => list(cursor))]
    for (const one of [start, middle])
      expect(one).toMatchObject(page({ account: limit + 1, actor: limit + 1 }))
    expect(middle.pages).toBeLessThan(start.pages * 1.5 + 20)
  })

  it('a page of sessions reads its own rows, of all accounts and of one', async () => {
    const list = (cursor: string | null) => admin.client.admin_session_list({ limit: 20, cursor })
    const { next_cursor } = await list(null)
    for (const cursor of [null, next_cursor])
      expect(await work(() => list(cursor))).toMatchObject(page({ auth_session: 21, account: 21 }))
    expect(await work(() => admin.client.admin_session_list({ account_id: admin.id }))).toMatchObject(
      page({ auth_session: 1 }),
    )
  })

  it('a search in scopes where few have grants does not read through all names', async () => {
    const scope = (nth: number): string => `00000000-0000-4000-8000-${String(nth).padStart(12, '0')}`
    const client = new pg.Client(test.databaseUrl)
    await client.connect()
    // A third has a grant at one large scope, the others at two hundred small ones, each with a few names of any letter.
    await client.query(`
      insert into role_grant (actor_id, role, scope_kind, scope_id)
      select id, 'teacher', 'team', ('00000000-0000-4000-8000-'
        || lpad((case when n % 3 = 0 then 0 else n % 300 end)::text, 12, '0'))::uuid
      from (select id, row_number() over (order by name_key) as n from actor where id <> '${admin.actor_id}') a`)
    await client.query(`
      insert into role_grant (actor_id, role, scope_kind, scope_id)
      select actor_id, 'student', 'team', scope_id from role_grant where scope_id = '${scope(0)}' limit 100`)
    await client.query('vacuum analyze role_grant')
    await client.end()
    const search = (scope_ids: string[], query: string) =>
      admin.client.actor_search({ query, scope_ids, limit: 50 })
    const unknown = Array.from({ length: 100 }, (_, nth) => scope(1_000_000 + nth))
    const nobody = await work(async () => expect((await search(unknown, 'q')).actors).toEqual([]))
    expect(nobody.rows.actor ?? 0).toBeLessThan(100)
    const few = await work(async () => expect((await search([scope(1)], 'q')).actors).not.toEqual([]))
    expect(few.rows.actor).toBeLessThan(500)
    expect((await search([scope(0)], 'q')).actors).toHaveLength(50)
  })
})
