import { beforeEach, describe, expect, it } from 'vitest'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { examinedMax } from '../../roles/holders.ts'
import type { TestAccount } from '../../testing/index.ts'

const room = '3b241101-e2bb-4255-8caf-4136c566a962'
const other = '4b241101-e2bb-4255-8caf-4136c566a962'
const test = await serviceForFile({
  roles: [
    { name: 'teacher', grant_paths: ['system', 'admin'] },
    { name: 'clerk', grant_paths: ['admin'] },
  ],
  scope_kinds: [{ name: 'room' }, { name: 'house' }],
  limit_admin_read: 'off',
})
let admin: TestAccount
beforeEach(async () => {
  await run(sql`delete from account`)
  admin = await test.account({ username: 'root', roles: ['admin'] })
})

const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)
type Input = NonNullable<Parameters<TestAccount['client']['admin_account_list']>[0]>
const names = (accounts: { account: { username: string } }[]) =>
  accounts.map(({ account }) => account.username)
const search = async (input: Input) => names((await admin.client.admin_account_list(input)).accounts)
/** All pages of a search. */
async function pages(input: Input): Promise<string[][]> {
  const found: string[][] = []
  for (let cursor: string | null = null; ; ) {
    const page: Awaited<ReturnType<typeof admin.client.admin_account_list>> =
      await admin.client.admin_account_list({ ...input, cursor })
    found.push(names(page.accounts))
    cursor = page.next_cursor
    if (cursor === null) return found
  }
}
const account = (username: string, email?: string) => test.account({ username, ...(email && { email }) })

describe('query', () => {
  it('finds accounts by the beginning of username or e-mail, whatever the case, in order of what matched', async () => {
    await account('grace')
    await account('gra_b', 'zoe@example.com')
    await account('hopper', 'Grandma@example.com')
    await account('agra')
    expect(await search({ query: 'GRA' })).toEqual(['gra_b', 'grace', 'hopper'])
    expect(await search({ query: ' grandma@' })).toEqual(['hopper'])
    expect(await search({ query: 'zoe@EXAMPLE.com' })).toEqual(['gra_b'])
    expect(await search({ query: 'x' })).toEqual([])
  })

  it('finds an account of which both begin so once', async () => {
    await account('grace', 'grace@example.com')
    expect(await pages({ query: 'grace', limit: 1 })).toEqual([['grace']])
  })

  it('takes %, _ and \\ literally, and ignores the case of other scripts', async () => {
    await account('ab_d')
    await account('abcd', 'Ärger%\\@example.com')
    expect(await search({ query: 'ab_' })).toEqual(['ab_d'])
    expect(await search({ query: 'ä' })).toEqual(['abcd'])
    expect(await search({ query: 'ärger%\\' })).toEqual(['abcd'])
    for (const query of ['%', '_', '\\', 'a%', 'ärger_']) expect(await search({ query })).toEqual([])
  })

  it('pages through every match once, also beside e-mails of the greatest length', async () => {
    const long = (first: string) => `${first}${'"'.repeat(240)}@example.com`
    const made = [
      ['ma', 'pb@example.com'],
      ['pa'],
      ['mb', long('p')],
      ['pc', 'pd@example.com'],
      ['md', long('pq')],
    ]
    for (const [username, email] of made) await account(`${username}__x`, email)
    const order = ['md__x', 'mb__x', 'pa__x', 'ma__x', 'pc__x'].sort()
    for (const limit of [1, 2, 4]) {
      const found = await pages({ query: 'p', limit })
      expect(found.flat().toSorted()).toEqual(order)
      expect(found.slice(0, -1).every((page) => page.length === limit)).toBe(true)
    }
  })

  it('pages through e-mails that folding makes longer', async () => {
    for (let nth = 1; nth <= 5; nth++) await account(`wide-${nth}`, `${'Ⱥ'.repeat(122)}${nth}@x.io`)
    for (const limit of [1, 2, 4])
      expect((await pages({ query: 'Ⱥ', limit })).flat()).toEqual([1, 2, 3, 4, 5].map((nth) => `wide-${nth}`))
  })

  it('leaves deleted accounts out unless they are asked for', async () => {
    const gone = await account('grace')
    await gone.client.account_delete()
    expect(await search({ query: 'gr' })).toEqual([])
    expect(await search({ query: 'gr', include_deleted: true })).toEqual(['grace'])
  })

  it.each(['', '  ', 'a'.repeat(255), 7])('%j is no query', async (query) => {
    expect(await reasonOf(admin.client.admin_account_list({ query: query as string }))).toBe('invalid_params')
  })

  it('belongs to its cursor', async () => {
    for (const name of ['gra', 'grb']) await account(name)
    const { next_cursor: cursor } = await admin.client.admin_account_list({ query: 'gr', limit: 1 })
    const attempt = (input: Input) => reasonOf(admin.client.admin_account_list({ ...input, cursor }))
    for (const input of [{}, { query: 'g' }, { query: 'gr', role: 'clerk' }, { role: 'clerk' }])
      expect(await attempt(input)).toBe('invalid_params')
    expect(await attempt({ query: 'gr' })).toBe('ok')
  })
})

describe('role', () => {
  const give = (one: TestAccount, role: string, scope_kind?: string, scope_id?: string) =>
    test.roleGrant({
      actor_id: one.actor_id,
      role,
      ...(scope_kind && { scope_kind, scope_id: scope_id ?? null }),
    })

  it('finds its holders once each: everywhere first, then by scope, by the age of the grant', async () => {
    const [ada, bob, eve] = [await account('ada'), await account('bob'), await account('eve')]
    await give(eve, 'teacher', 'room', other)
    await give(bob, 'teacher', 'room', room)
    await give(ada, 'teacher', 'house', room)
    await give(bob, 'teacher')
    await give(eve, 'clerk')
    expect(await search({ role: 'teacher' })).toEqual(['bob', 'ada', 'eve'])
    expect(await pages({ role: 'teacher', limit: 1 })).toEqual([['bob'], ['ada'], ['eve']])
    expect(await search({ role: 'clerk' })).toEqual(['eve'])
    expect(await search({ role: 'nobody_has_it' })).toEqual([])
    expect(await search({ role: 'teacher', query: 'e' })).toEqual(['eve'])
    expect(await search({ role: 'teacher', query: 'ro' })).toEqual([])
  })

  it('counts active grants of the actors that are shown, and of deleted accounts on request', async () => {
    const [ada, bob, eve] = [await account('ada'), await account('bob'), await account('eve')]
    const second = await test.actor(ada.id, 'second')
    await test.roleGrant({ actor_id: second, role: 'teacher' })
    await run(sql`update actor set deleted_at = now() where id = ${second}::uuid`)
    await give(bob, 'teacher')
    await run(
      sql`update role_grant set expires_at = date_trunc('milliseconds', now()) where actor_id = ${bob.actor_id}::uuid`,
    )
    await give(eve, 'teacher')
    await eve.client.account_delete()
    for (const query of [null, 'e']) {
      expect(await search({ role: 'teacher', query })).toEqual([])
      expect(await search({ role: 'teacher', query, include_deleted: true })).toEqual(['eve'])
    }
  })

  it.each(['', 'Teacher', 'a b', 'x'.repeat(65)])('%j is no role', async (role) => {
    expect(await reasonOf(admin.client.admin_account_list({ role }))).toBe('invalid_params')
  })
})

describe(`beyond ${examinedMax} entries that do not match`, () => {
  it('a page ends early and the next goes on, until the last match', async () => {
    await run(sql`
      with made as (
        insert into account (username, password_hash)
        select 'zz' || lpad(i::text, 6, '0'), 'x' from generate_series(1, ${2 * examinedMax + 1}::int) i
        returning id, username
      ), actors as (
        insert into actor (account_id, name, name_key) select id, '', '' from made returning id, account_id
      )
      insert into role_grant (actor_id, role, expires_at)
      select actors.id, case when username like '%1' then 'teacher' else 'clerk' end,
        case when username <> 'zz010001' then date_trunc('milliseconds', now()) end
      from actors join made on made.id = actors.account_id`)
    expect(await pages({ query: 'zz', role: 'teacher' })).toEqual([[], [], ['zz010001']])
    await run(sql`update role_grant set role = 'teacher' where role = 'clerk'`)
    expect((await pages({ role: 'teacher' })).flat()).toEqual(['zz010001'])
    expect((await pages({ role: 'teacher' })).length).toBeLessThanOrEqual(3)
  })
})
