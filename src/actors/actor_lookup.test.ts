import { expect, it } from 'vitest'
import { call, rpc, send } from '../../test/helpers/http.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, testService } from '../testing/index.ts'

const test = await serviceForFile({ max_actors: 'off' })
const ada = await test.account({ username: 'ada', email: 'ada@example.com' })

const lookup = async (ids: string[]) => (await ada.client.actor_lookup({ ids })).actors
const unknown = (count: number) => Array.from({ length: count }, () => crypto.randomUUID())

it('labels an actor with its id, the username of its account and its name, trimmed, and nothing else', async () => {
  const bob = await test.account({ username: 'bob', email: 'bob@example.com' })
  const named = await test.actor(bob.id, 'Robert the second')
  await test.service.app.db.run(sql`update actor set name = '  Bob  ' where id = ${bob.actor_id}::uuid`)
  const labels = await scenario(test, () => lookup([named, bob.actor_id]))
  expect(labels).toHaveLength(2)
  expect(labels).toEqual(
    expect.arrayContaining([
      { id: bob.actor_id, username: 'bob', display_name: 'Bob' },
      { id: named, username: 'bob', display_name: 'Robert the second' },
    ]),
  )
})

it.each(['', ' ', '   \u00a0'])('leaves out a display name of %j', async (name) => {
  const blank = await test.actor(ada.id, '')
  await test.service.app.db.run(sql`update actor set name = ${name} where id = ${blank}::uuid`)
  const [label] = await lookup([blank])
  expect(Object.keys(label as object).sort()).toEqual(['id', 'username'])
})

it('leaves out unknown, removed, deleted and purged actors, and finds those of anybody', async () => {
  const [live, removed, deleted, purged] = [
    await test.account(),
    await test.account(),
    await test.account(),
    await test.account(),
  ]
  const { db } = test.service.app
  await db.run(sql`update actor set deleted_at = now() where id = ${removed.actor_id}::uuid`)
  await deleted.client.account_delete()
  await db.run(sql`delete from account where id = ${purged.id}::uuid`)
  const ids = [live, removed, deleted, purged].map(({ actor_id }) => actor_id)
  expect((await lookup([...ids, ...unknown(3)])).map(({ id }) => id)).toEqual([live.actor_id])
  expect(await lookup(unknown(1))).toEqual([])
})

it('takes 1 to 50 ids, in any case, each once in the answer', async () => {
  expect(await lookup(Array(50).fill(ada.actor_id))).toHaveLength(1)
  const upper = ada.actor_id.toUpperCase()
  expect((await lookup([upper, ada.actor_id, upper])).map(({ id }) => id)).toEqual([ada.actor_id])
  const others = await Promise.all(Array.from({ length: 49 }, (_, i) => test.actor(ada.id, `a${i}`)))
  expect(await lookup([ada.actor_id, ...others])).toHaveLength(50)
  await test.service.app.db.run(sql`delete from actor where id = any(${others}::uuid[])`)
})

it.each<[string, unknown, (string | number)[], string]>([
  ['no ids', undefined, ['ids'], 'invalid_type'],
  ['null', null, ['ids'], 'invalid_type'],
  ['one id as text', '11111111-1111-1111-1111-111111111111', ['ids'], 'invalid_type'],
  ['an empty list', [], ['ids'], 'too_small'],
  ['51 ids', unknown(51), ['ids'], 'too_big'],
  ['51 times one id', Array(51).fill(unknown(1)[0]), ['ids'], 'too_big'],
  ['what is no id', ['ada'], ['ids', 0], 'invalid_format'],
  ['a number', [unknown(1)[0], 7], ['ids', 1], 'invalid_type'],
])('refuses %s', async (_what, ids, path, code) => {
  const { json } = await rpc(test.url, call('actor_lookup', { ids }), { cookie: ada.cookie })
  expect(json).toMatchObject({
    error: { code: -32602, data: { reason: 'invalid_params', issues: [{ path, code }] } },
  })
})

it('needs a credential and no actor, and takes no `acting`', async () => {
  const ids = [ada.actor_id]
  expect(await reasonOf(test.client().actor_lookup({ ids }))).toBe('authentication_required')
  await test.actor(ada.id, 'another')
  expect(await lookup(ids)).toHaveLength(1)
  expect(await reasonOf(ada.client.actor_lookup({ ids, acting: ada.actor_id } as { ids: string[] }))).toBe(
    'invalid_params',
  )
  const params = encodeURIComponent(JSON.stringify({ ids }))
  const { status, json } = await send(test.url, {
    path: `/api/rpc?method=actor_lookup&id=1&params=${params}`,
    headers: { cookie: ada.cookie },
  })
  expect([status, json]).toMatchObject([200, { result: { actors: [{ id: ada.actor_id }] } }])
})

it('exhausted, leaves room for tokens and revocations; a refused call costs nothing', async () => {
  await using limited = await testService({ limit_lookup: '2/900' })
  const { client, actor_id } = await limited.account()
  const ids = [actor_id]
  await client.actor_lookup({ ids })
  expect(await reasonOf(client.actor_lookup({ ids: [] }))).toBe('invalid_params')
  expect(await reasonOf(client.actor_search({ query: 'x' }))).toBe('actor_search_scope_required')
  expect(await reasonOf(client.actor_lookup({ ids }))).toBe('rate_limited')
  expect(await reasonOf(client.actor_search({ query: 'x', scope_ids: ids }))).toBe('rate_limited')
  const { id } = await client.account_token_create({ scope: { kind: 'full' }, lifetime: { kind: 'eternal' } })
  expect(await client.account_token_revoke({ token_id: id })).toEqual({ ok: true, revoked: true })
  expect((await client.account_session_revoke_all()).ok).toBe(true)
})
