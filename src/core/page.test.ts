import { beforeEach, describe, expect, it } from 'vitest'
import { clientWith } from '../../test/helpers/callers.ts'
import { call, rpc } from '../../test/helpers/http.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import type { Client } from '../client/client.ts'
import { type Sql, sql } from '../db/db.ts'
import { type TestAccount, testService } from '../testing/index.ts'
import { closePage, openPage } from './page.ts'

/** The paging rules of every list, tested on lists over whole tables. */
type PageInput = { limit?: number | null; cursor?: string | null; acting?: string }
type Page = { ids: string[]; next_cursor: string | null }
type List = {
  method:
    | 'admin_account_list'
    | 'admin_session_list'
    | 'invite_list'
    | 'role_grant_offer_list'
    | 'role_grant_offer_history'
  /** How many rows a page has by default and at most. */
  usual: 50 | 100
  max: 200 | 500
  read(client: Client, input: PageInput): Promise<Page>
  /** Inserts rows of one millisecond, `age` old. */
  plant(count: number, age: string): Sql
  remove(id: string): Sql
  /** Every id, in the order of the list. */
  ordered: Sql
  /** A value of its filter other than the default, if it has one. */
  filter?(owner: TestAccount): object
  /** One value of its filter in several spellings. */
  spellings(owner: TestAccount): object[]
}

const offers = {
  usual: 100,
  max: 500,
  plant: (count: number, age: string) => sql`
    insert into role_grant_offer (from_actor_id, from_account_id, to_account_id, role, scope_kind, scope_id,
      created_at, expires_at)
    select actor.id, account_id, account_id, 'teacher', 'room', gen_random_uuid(), now() - ${age}::interval,
      now() + interval '1 day' - ${age}::interval
    from (select * from actor order by created_at limit 1) actor, generate_series(1, ${count}::int)`,
  remove: (id: string) => sql`delete from role_grant_offer where offer_id = ${id}::uuid`,
  filter: () => ({ account_id: '00000000-0000-4000-8000-000000000000' }),
  spellings: () => [{}, { account_id: null }],
} as const

const lists: List[] = [
  {
    method: 'admin_account_list',
    usual: 50,
    max: 200,
    read: async (client, input) => {
      const { accounts, next_cursor } = await client.admin_account_list(input)
      return { ids: accounts.map(({ account }) => account.id), next_cursor }
    },
    plant: (count, age) => sql`
      insert into account (username, password_hash, created_at)
      select 'planted-' || gen_random_uuid(), 'x', now() - ${age}::interval from generate_series(1, ${count}::int)`,
    remove: (id) => sql`delete from account where id = ${id}::uuid`,
    ordered: sql`select id from account where deleted_at is null order by created_at, id`,
    filter: () => ({ include_deleted: true }),
    spellings: () => [{}, { include_deleted: null }, { include_deleted: false }],
  },
  {
    method: 'admin_session_list',
    usual: 50,
    max: 200,
    read: async (client, input) => {
      const { sessions, next_cursor } = await client.admin_session_list(input)
      return { ids: sessions.map(({ id }) => id), next_cursor }
    },
    plant: (count, age) => sql`
      insert into auth_session (id, account_id, created_at, expires_at)
      select encode(sha256(gen_random_uuid()::text::bytea), 'hex'), (select id from account order by created_at limit 1),
        now() - ${age}::interval, now() + interval '1 day'
      from generate_series(1, ${count}::int)`,
    remove: (id) => sql`delete from auth_session where id = ${id}`,
    ordered: sql`select id from auth_session where expires_at > now() order by created_at desc, id desc`,
    filter: ({ id }) => ({ account_id: id }),
    spellings: ({ id }) => [{ account_id: id }, { account_id: id.toUpperCase() }],
  },
  {
    method: 'invite_list',
    usual: 50,
    max: 200,
    read: async (client, input) => {
      const { invites, next_cursor } = await client.invite_list(input)
      return { ids: invites.map(({ id }) => id), next_cursor }
    },
    plant: (count, age) => sql`
      insert into invite (username, created_at)
      select 'guest' || gen_random_uuid(), now() - ${age}::interval from generate_series(1, ${count}::int)`,
    remove: (id) => sql`delete from invite where id = ${id}::uuid`,
    ordered: sql`select id from invite order by created_at desc, id desc`,
    spellings: () => [{}],
  },
  ...(['role_grant_offer_list', 'role_grant_offer_history'] as const).map((method) => ({
    ...offers,
    method,
    read: async (client: Client, input: PageInput) => {
      const { offers, next_cursor } = await client[method](input)
      return { ids: offers.map(({ offer_id }) => offer_id), next_cursor }
    },
    ordered:
      method === 'role_grant_offer_list'
        ? sql`select offer_id as id from role_grant_offer order by expires_at, offer_id`
        : sql`select offer_id as id from role_grant_offer order by created_at desc, offer_id desc`,
  })),
]

const oldKey = 'old-key-old-key-old-key-old-key-1'
const newKey = 'new-key-new-key-new-key-new-key-2'
let admin: TestAccount
const test = await serviceForFile({ cookie_keys: [oldKey], limit_admin_read: 'off' })
beforeEach(async () => {
  for (const table of ['account', 'invite', 'role_grant_offer']) await run(sql`delete from ${sql.raw(table)}`)
  admin = await test.account({ roles: ['admin'] })
  // Puts one row first in each list, as the admin's account and session are in theirs.
  await run(sql`insert into invite (username) values ('first')`)
  await run(sql`
    insert into role_grant_offer (from_actor_id, from_account_id, to_account_id, role, expires_at)
    values (${admin.actor_id}, ${admin.id}, ${admin.id}, 'teacher', now() + interval '1 hour')`)
})

const run = (statement: Sql) => test.service.app.db.run(statement)
const idsOf = async ({ ordered }: List): Promise<string[]> =>
  (await test.service.app.db.rows<{ id: string }>(ordered)).map(({ id }) => id)
const first = (list: List, limit = 1) => list.read(admin.client, { limit })
/** The pages from the first to the last; `between` runs after each. */
async function walk(list: List, limit: number | undefined, between?: (page: Page) => Promise<unknown>) {
  const pages: string[][] = []
  for (let cursor: string | null = null; ; ) {
    const page: Page = await list.read(admin.client, { cursor, ...(limit !== undefined && { limit }) })
    pages.push(page.ids)
    await between?.(page)
    if (page.next_cursor === null) return pages
    cursor = page.next_cursor
  }
}
const refusalOf = async (method: string, params: object) => {
  const { status, json } = await rpc(test.url, call(method, params), { cookie: admin.cookie })
  const { error } = json as { error?: { data: { reason: string; issues?: object[] } } }
  return [status, error?.data.reason, error?.data.issues]
}
const badCursor = [
  400,
  'invalid_params',
  [{ path: ['cursor'], code: 'invalid_cursor', message: expect.any(String) }],
]

describe.each(lists)('the pages of $method', (list) => {
  it('of 7 show each of 300 rows of one millisecond once, in order', async () => {
    await run(list.plant(300, '1 hour'))
    const all = await idsOf(list)
    expect(all.length).toBeGreaterThan(300)
    const pages = await walk(list, 7)
    expect(pages.flat()).toEqual(all)
    expect(pages.slice(0, -1).every(({ length }) => length === 7)).toBe(true)
  })

  it('have 1 to their maximum of rows, a default if no limit is given; a full last one has no cursor', async () => {
    const { usual, max } = list
    const [kept] = await idsOf(list)
    await run(list.plant(2 * max - 1, '1 hour'))
    const all = await idsOf(list)
    expect(all).toHaveLength(2 * max)
    expect((await walk(list, max)).map(({ length }) => length)).toEqual([max, max])
    expect((await walk(list, undefined)).map(({ length }) => length)).toEqual(
      Array((2 * max) / usual).fill(usual),
    )
    const nulls = await list.read(admin.client, { limit: null, cursor: null })
    expect(nulls).toEqual(await list.read(admin.client, {}))
    expect(nulls.ids).toEqual(all.slice(0, usual))
    await run(list.remove(all.find((id) => id !== kept) as string))
    expect((await walk(list, max)).map(({ length }) => length)).toEqual([max, max - 1])
  })

  it.each([1, 200])(
    'of %i lose and repeat none of the rows that stay, while others come and go',
    async (limit) => {
      const [kept] = await idsOf(list)
      await run(list.plant(30, '1 hour'))
      await run(list.plant(limit === 1 ? 10 : 400, '2 hours'))
      const before = await idsOf(list)
      const removed = new Set<string>()
      const seen = await walk(list, limit, async ({ ids }) => {
        if (removed.size > 16) return
        // The last row of the page, whose key is in the cursor, and a row of a later page.
        const open = before.filter((id) => id !== kept && !ids.includes(id) && !removed.has(id))
        for (const id of [ids.at(-1), open.at(-1)] as string[])
          if (id !== kept) {
            removed.add(id)
            await run(list.remove(id))
          }
        await run(list.plant(1, '90 minutes'))
      })
      const flat = seen.flat()
      expect(new Set(flat).size).toBe(flat.length)
      const stayed = before.filter((id) => !removed.has(id))
      expect(flat.filter((id) => stayed.includes(id))).toEqual(stayed)
    },
  )

  it.each([
    [{ limit: 0 }, 'too_small'],
    [{ limit: list.max + 1 }, 'too_big'],
    [{ limit: -1 }, 'too_small'],
    [{ limit: 1.5 }, 'invalid_type'],
    [{ limit: '7' }, 'invalid_type'],
    [{ limit: 2 ** 53 }, expect.any(String)],
    [{ offset: 0 }, 'unrecognized_keys'],
  ])('cannot be asked for by %j', async (input, code) => {
    const issues = [{ path: Object.keys(input), code }]
    expect(await refusalOf(list.method, input)).toMatchObject([400, 'invalid_params', issues])
  })

  it('go on from the cursor that was given, and from no other text', async () => {
    await run(list.plant(3, '1 hour'))
    const { next_cursor } = await first(list)
    const cursor = next_cursor as string
    const changed = Array.from(cursor, (old, at) => {
      const other = old === 'A' ? 'B' : 'A'
      return cursor.slice(0, at) + other + cursor.slice(at + 1)
    })
    const texts = [
      ...changed.filter((_, at) => at % 5 === 0 || at > cursor.length - 3),
      cursor.slice(1),
      cursor.slice(0, -1),
      `${cursor}A`,
      cursor.repeat(9).slice(0, 513),
      '',
      ' ',
      `${cursor}=`,
      Buffer.from('["2026-01-01T00:00:00.000Z","x"]').toString('base64url'),
      7,
      [],
    ]
    for (const text of texts)
      expect([text, await refusalOf(list.method, { cursor: text })]).toEqual([text, badCursor])
    expect((await list.read(admin.client, { cursor })).ids).toEqual((await idsOf(list)).slice(1))
  })

  it('go on for the method, actor and filter of their cursor only, whatever the limit', async () => {
    await run(list.plant(3, '1 hour'))
    const cursor = (await first(list)).next_cursor as string
    for (const { method } of lists)
      if (method !== list.method) expect(await refusalOf(method, { cursor })).toEqual(badCursor)
    if (list.filter)
      expect(await refusalOf(list.method, { cursor, ...list.filter(admin) })).toEqual(badCursor)
    const other = await test.account({ roles: ['admin'] })
    expect(await reasonOf(other.client[list.method]({ cursor }))).toBe('invalid_params')
    const second = await test.actor(admin.id, 'second')
    await test.roleGrant({ actor_id: second, role: 'admin' })
    expect(await refusalOf(list.method, { cursor, acting: second })).toEqual(badCursor)
    const own = await list.read(admin.client, { cursor, limit: 3, acting: admin.actor_id.toUpperCase() })
    expect(own.ids).toHaveLength(3)
  })

  it('go on with another spelling of the same filter', async () => {
    await run(list.plant(3, '1 hour'))
    const spellings = list.spellings(admin)
    for (const from of spellings)
      for (const to of spellings) {
        const page = { ...(await admin.client[list.method]({ ...from, limit: 1 })) }
        expect(await refusalOf(list.method, { ...to, cursor: page.next_cursor })).toEqual([
          200,
          undefined,
          undefined,
        ])
      }
  })

  it('go on after the keys were rotated, as long as the old one is in the ring', async () => {
    await run(list.plant(3, '1 hour'))
    const cursor = (await first(list)).next_cursor as string
    for (const [cookie_keys, reason] of [
      [[newKey, oldKey], 'ok'],
      [[newKey], 'invalid_params'],
    ] as const) {
      await using node = await testService({ database_url: test.databaseUrl, cookie_keys: [...cookie_keys] })
      const { client } = await node.account({ username: `admin-${reason.slice(0, 2)}`, roles: ['admin'] })
      // The same actor on the other node: a keeper's daemon token needs no cookie.
      await test.roleGrant({ actor_id: admin.actor_id, role: 'keeper' })
      expect(await reasonOf(client[list.method]({ cursor }))).toBe('invalid_params')
      const same = clientWith(node, { 'x-daemon-token': node.daemonToken.current })
      expect(await reasonOf(same[list.method]({ cursor }))).toBe(reason)
    }
  })
})

it('a cursor of one list is not valid for another list with the same filters', () => {
  const { app } = test.service
  const open = (method: string, cursor?: string) =>
    openPage(app, method, { account_id: 'x' }, { limit: 1, cursor })
  const { next_cursor } = closePage(app, open('one'), ['a', 'b'], (row) => [row])
  expect(open('one', next_cursor as string).after).toEqual(['a'])
  expect(() => open('other', next_cursor as string)).toThrow('invalid_params')
})
