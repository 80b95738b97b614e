import { describe, expect, it } from 'vitest'
import { call, rpc } from '../../test/helpers/http.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import type { Client } from '../client/client.ts'
import { sql } from '../db/db.ts'
import { scenario } from '../testing/index.ts'

const [room, hall, attic] = ['a', 'b', 'c'].map((end) => `00000000-0000-4000-8000-00000000000${end}`) as [
  string,
  string,
  string,
]
const test = await serviceForFile({
  limit_lookup: 'off',
  max_actors: 'off',
  roles: [
    { name: 'teacher', grant_paths: ['system'] },
    { name: 'student', grant_paths: ['system'] },
  ],
  scope_kinds: [{ name: 'room' }],
})
const admin = await test.account({ username: 'root', roles: ['admin'] })
const names = await test.account({ username: 'names' })

const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)
const search = async (
  query: string,
  input: { scope_ids?: string[]; limit?: number } = {},
  by = admin.client,
) => (await by.actor_search({ query, ...input })).actors
const namesOf = async (query: string, input: { scope_ids?: string[]; limit?: number } = {}) =>
  (await search(query, input)).map(({ display_name }) => display_name)
const attempt = async (client: Client, input: { scope_ids?: string[] | null } = {}) =>
  await reasonOf(client.actor_search({ query: 'x', ...input } as { query: string }))
/** Creates actors of one account; resolves to their ids, in the order of the names. */
const add = (...all: string[]) => Promise.all(all.map((name) => test.actor(names.id, name)))
const grantAt = (actor_id: string, scope_id: string, role = 'teacher') =>
  test.roleGrant({ actor_id, role, scope_kind: 'room', scope_id })

describe('a search finds names that begin with the text', () => {
  it('whatever its case, composed or not', async () => {
    await add('Élodie', 'e\u0301LAN', 'elan', 'ΣΊΣΥΦΟΣ', 'STRASSE', 'Straße')
    for (const query of ['ÉL', 'él', 'E\u0301l', 'e\u0301L', '  ÉL  '])
      expect(await namesOf(query)).toEqual(['e\u0301LAN', 'Élodie'])
    expect(await namesOf('ÉLO')).toEqual(['Élodie'])
    expect(await namesOf('el')).toEqual(['elan'])
    // Each code point is folded alone: a final sigma counts as itself, and ß is not ss.
    expect(await namesOf('σίσυφοσ')).toEqual(['ΣΊΣΥΦΟΣ'])
    expect(await namesOf('σίσυφος')).toEqual(['ΣΊΣΥΦΟΣ'])
    expect(await namesOf('strass')).toEqual(['STRASSE'])
    expect(await namesOf('straß')).toEqual(['Straße'])
  })

  it('whatever the case of a Greek letter, its form at the end of a word, and its width', async () => {
    await add('Οδος Ερμου', 'ΟΔΟΣ', 'µm', 'Ｗide', 'ﬁsh', 'İzmir', 'strauß')
    for (const query of ['οδος', 'ΟΔΟΣ', 'οδοσ'])
      expect((await namesOf(query)).sort()).toEqual(['Οδος Ερμου', 'ΟΔΟΣ'].sort())
    expect(await namesOf('Μm')).toEqual(['µm'])
    expect(await namesOf('wi')).toEqual(['Ｗide'])
    expect(await namesOf('FI')).toEqual(['ﬁsh'])
    expect(await namesOf('ı')).toEqual([])
    expect(await namesOf('strauss')).toEqual([])
    expect(await namesOf('STRAUẞ')).toEqual(['strauß'])
  })

  it('that are as long as their letters can make them', async () => {
    const longest = Array.from({ length: 100 }, (_, n) =>
      n % 3 ? '\ufdfa' : String.fromCodePoint(0x3300 + n),
    ).join('')
    for (const name of ['\ufdfa'.repeat(100), longest]) {
      await add(name)
      expect(await namesOf([...name].slice(0, 50).join(''))).toEqual([name])
    }
  })

  it('literally: %, _ and \\ stand for themselves', async () => {
    await add('100% pure', '100_pure', '100\\pure', '%off', '_off', '\\off', '100 pure')
    expect(await namesOf('%')).toEqual(['%off'])
    expect(await namesOf('_')).toEqual(['_off'])
    expect(await namesOf('\\')).toEqual(['\\off'])
    expect(await namesOf('100%')).toEqual(['100% pure'])
    expect(await namesOf('100_')).toEqual(['100_pure'])
    expect(await namesOf('100\\')).toEqual(['100\\pure'])
    expect(await namesOf('a%')).toEqual([])
  })

  it.each([
    ['the last letters of the planes', '\ud7ff', ['\ud7ffa'], ['\ue000a']],
    ['the last of all', '\u{10ffff}', ['\u{10ffff}', '\u{10ffff}a'], []],
    ['one behind another letter', 'z\u{10ffff}', ['z\u{10ffff}a'], ['{']],
    ['the last of the first plane', '\uffff', ['\uffffa'], ['\u{10000}a']],
    ['an emoji', '😀', ['😀 smile'], ['😁']],
  ])('also where they end with %s', async (_what, query, found, others) => {
    await add(...found, ...others)
    expect(await namesOf(query)).toEqual(found)
  })

  it('and neither usernames, nor the middle of names, nor blank names', async () => {
    const [blank] = await add('')
    await run(
      sql`update actor set name = 'Middlename', name_key = 'middlename' where id = ${names.actor_id}::uuid`,
    )
    expect(await search('names')).toEqual([])
    expect(await search('name')).toEqual([])
    expect(await search('middle')).toEqual([
      { id: names.actor_id, username: 'names', display_name: 'Middlename' },
    ])
    const all = await Promise.all(['a', 'e', 'm', 'n', '1'].map((query) => search(query, { limit: 50 })))
    expect(all.flat().map(({ id }) => id)).not.toContain(blank)
  })

  it('of live actors of live accounts', async () => {
    const [gone, purged] = [
      await test.account({ username: 'livegone' }),
      await test.account({ username: 'livepurged' }),
    ]
    const [kept, removed] = (await add('live kept', 'live removed')) as [string, string]
    await run(sql`update actor set deleted_at = now() where id = ${removed}::uuid`)
    await gone.client.account_delete()
    await run(sql`delete from account where id = ${purged.id}::uuid`)
    for (const actor of [kept, removed, gone.actor_id]) await grantAt(actor, attic).catch(() => {})
    await run(sql`
      insert into role_grant (actor_id, role, scope_kind, scope_id)
      select id, 'student', 'room', ${attic}::uuid from actor where id = any(${[removed, gone.actor_id]}::uuid[])`)
    expect((await search('live')).map(({ id }) => id)).toEqual([kept])
    expect((await search('live', { scope_ids: [attic] })).map(({ id }) => id)).toEqual([kept])
    await admin.client.account_undelete({ account_id: gone.id })
    expect(await search('live')).toHaveLength(2)
  })

  it('20 of them by default, 1 to 50 on request, always the same ones', async () => {
    const ids = await add(...Array.from({ length: 60 }, () => 'many'))
    const found = (await search('many', { limit: 50 })).map(({ id }) => id)
    expect(found).toEqual(ids.sort().slice(0, 50))
    for (const [limit, count] of [
      [undefined, 20],
      [1, 1],
      [50, 50],
    ] as const)
      expect((await search('many', limit === undefined ? {} : { limit })).map(({ id }) => id)).toEqual(
        found.slice(0, count),
      )
  })
})

describe('the input of a search', () => {
  it.each<[string, object, (string | number)[], string]>([
    ['no query', {}, ['query'], 'invalid_type'],
    ['an empty query', { query: '' }, ['query'], 'too_small'],
    ['a blank query', { query: ' \t\u00a0 ' }, ['query'], 'too_small'],
    ['51 code points', { query: '😀'.repeat(51) }, ['query'], 'too_big'],
    ['NUL', { query: 'a\0' }, ['query'], 'invalid_format'],
    ['a lone surrogate', { query: 'a\ud800' }, ['query'], 'invalid_format'],
    ['a number', { query: 7 }, ['query'], 'invalid_type'],
    ['101 scopes', { query: 'a', scope_ids: Array(101).fill(room) }, ['scope_ids'], 'too_big'],
    ['null scopes', { query: 'a', scope_ids: null }, ['scope_ids'], 'invalid_type'],
    ['no scope id', { query: 'a', scope_ids: ['room'] }, ['scope_ids', 0], 'invalid_format'],
    ['limit 0', { query: 'a', limit: 0 }, ['limit'], 'too_small'],
    ['limit 51', { query: 'a', limit: 51 }, ['limit'], 'too_big'],
    ['limit 1.5', { query: 'a', limit: 1.5 }, ['limit'], 'invalid_type'],
    ['an offset', { query: 'a', offset: 1 }, ['offset'], 'unrecognized_keys'],
    ['acting', { query: 'a', acting: room }, ['acting'], 'unrecognized_keys'],
  ])('is refused with %s, to whoever may not search at all too', async (_what, params, path, code) => {
    for (const { cookie } of [admin, names]) {
      const { json } = await rpc(test.url, call('actor_search', params), { cookie })
      expect(json).toMatchObject({
        error: { code: -32602, data: { reason: 'invalid_params', issues: [{ path, code }] } },
      })
    }
  })

  it('may be 50 code points and white space around them, 100 scopes, a null limit', async () => {
    const longest = '😀'.repeat(50)
    await add(longest)
    expect(await namesOf(`\u3000 ${longest}\n`)).toEqual([longest])
    expect(await search('x', { scope_ids: Array(100).fill(room) })).toEqual([])
    expect((await admin.client.actor_search({ query: 'x', limit: null })).actors).toEqual([])
  })
})

describe('a search without scopes', () => {
  it.each([
    ['no grant', 'actor_search_scope_required', null],
    ['a keeper grant', 'actor_search_scope_required', `update role_grant set role = 'keeper'`],
    [
      'a scoped one',
      'actor_search_scope_required',
      `update role_grant set scope_kind = 'room', scope_id = '${room}'`,
    ],
    [
      'an expired one',
      'actor_search_scope_required',
      `update role_grant set expires_at = date_trunc('milliseconds', now())`,
    ],
    ['a revoked one', 'actor_search_scope_required', 'update role_grant set revoked_at = now()'],
    ['a closed one', 'actor_search_scope_required', 'update role_grant set closed_at = now()'],
    ['one that ends later', 'ok', `update role_grant set expires_at = now() + interval '1 minute'`],
  ])('takes a global admin: with %s it answers %s', async (_what, reason, change) => {
    const ada = await test.account(change ? { roles: ['admin'] } : {})
    if (change) await run(sql`${sql.raw(change)} where actor_id = ${ada.actor_id}::uuid`)
    for (const input of [{}, { scope_ids: [] }])
      await scenario(test, async () => expect(await attempt(ada.client, input)).toBe(reason))
    expect(await attempt(ada.client, { scope_ids: [room] })).toBe('ok')
  })

  it('takes some actor of the account that is admin, and a live one', async () => {
    const ada = await test.account()
    const second = await test.actor(ada.id, 'second')
    expect(await attempt(ada.client)).toBe('actor_search_scope_required')
    await test.roleGrant({ actor_id: second, role: 'admin' })
    expect(await attempt(ada.client)).toBe('ok')
    await run(sql`update actor set deleted_at = now() where id = ${second}::uuid`)
    expect(await attempt(ada.client)).toBe('actor_search_scope_required')
  })

  it('is refused alike, whether it would find somebody or not', async () => {
    const { cookie } = await test.account()
    const answers = await Promise.all(
      ['root', 'nobody at all'].map((query) => rpc(test.url, call('actor_search', { query }), { cookie })),
    )
    expect(answers.map(({ status, text }) => [status, text])).toEqual(
      Array(2).fill([400, expect.stringContaining('"code":-32602')]),
    )
    expect(answers[0]?.text).toBe(answers[1]?.text)
  })
})

describe('a search in scopes', () => {
  it('finds who has an active grant there, each once, for anybody who asks', async () => {
    const [one, two, three, nowhere] = (await add(
      'scoped 1',
      'scoped 2',
      'scoped 3',
      'scoped 4',
    )) as string[] as [string, string, string, string]
    await grantAt(one, room)
    await grantAt(one, room, 'student')
    await grantAt(one, hall)
    await grantAt(two, hall)
    await grantAt(three, room, 'student')
    await test.roleGrant({ actor_id: nowhere, role: 'teacher' })
    const { client } = await test.account()
    const found = async (...scope_ids: string[]) =>
      (await search('scoped', { scope_ids }, client)).map(({ id }) => id)
    expect(await found(room, hall)).toEqual([one, two, three])
    expect(await found(room.toUpperCase())).toEqual([one, three])
    expect(await found(hall, hall)).toEqual([one, two])
    expect(await found(crypto.randomUUID())).toEqual([])
    for (const change of ['revoked_at', 'expires_at', 'closed_at']) {
      await run(sql`update role_grant set ${sql.raw(change)} = now() where actor_id = ${three}::uuid`)
      expect(await found(room)).toEqual([one])
      await run(sql`update role_grant set ${sql.raw(change)} = null where actor_id = ${three}::uuid`)
      expect(await found(room)).toEqual([one, three])
    }
  })
})
