import { afterAll, beforeAll, expect, test as it } from 'vitest'
import { cellRows } from '../../../test/helpers/cell-rows.ts'
import { rpc } from '../../../test/helpers/http.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { sql } from '../../db/db.ts'
import { type TestAccount, type TestService, testService } from '../../testing/index.ts'

let test: TestService
let ada: TestAccount
let bob: TestAccount
beforeAll(async () => {
  test = await testService()
  ;[ada, bob] = await Promise.all([test.account(), test.account()])
})
afterAll(() => test.close())

type Input = NonNullable<Parameters<TestAccount['client']['cell_list']>[0]>
type Page = { cells: { id: string }[]; next_cursor: string | null }
const list = async ({ service }: TestService, input: Input, cookie?: string): Promise<Page> =>
  (await service.call('cell_list', input, cookie === undefined ? {} : { headers: { cookie } })) as Page

const kind = 'cursor'
let cursor: string
let ids: string[]
beforeAll(async () => {
  await cellRows(test, 30, {
    kind: sql`${kind}::text`,
    visibility: sql`'public'`,
    created_by: sql`${ada.actor_id}::uuid`,
    path: sql`'cursor/' || i`,
  })
  ids = (await list(test, { kind, limit: 200 })).cells.map(({ id }) => id)
  cursor = (await list(test, { kind, limit: 5 }, ada.cookie)).next_cursor as string
})

it('a cursor is bound to caller, method, every filter, order and direction, but not to the limit', async () => {
  const otherwise: Input[] = [
    {},
    { kind: 'other' },
    { kind, visibility: 'public' },
    { kind, created_by: ada.actor_id },
    { kind, path_prefix: 'cursor' },
    { kind, path_prefix: 'cursor', order_direction: 'desc' },
    { kind, shared_with: 'me' },
    { kind, ids },
    { kind, order_by: 'updated_at' },
    { kind, order_direction: 'asc' },
  ]
  for (const input of otherwise)
    expect(await reasonOf(list(test, { ...input, cursor }, ada.cookie)), JSON.stringify(input)).toBe(
      'invalid_params',
    )
  for (const cookie of [bob.cookie, undefined])
    expect(await reasonOf(list(test, { kind, cursor }, cookie))).toBe('invalid_params')
  const anonymous = (await list(test, { kind, limit: 5 })).next_cursor
  expect(await reasonOf(list(test, { kind, cursor: anonymous }, ada.cookie))).toBe('invalid_params')
  const second = await test.actor(bob.id, 'second')
  const ofBob = await list(test, { kind, limit: 5, acting: bob.actor_id }, bob.cookie)
  const sent = { kind, cursor: ofBob.next_cursor }
  expect(await reasonOf(list(test, { ...sent, acting: second }, bob.cookie))).toBe('invalid_params')
  await test.service.app.db.run(sql`delete from actor where id = ${second}`)
  expect(await reasonOf(list(test, sent, bob.cookie))).toBe('ok')

  const rest = await list(test, { kind, cursor, limit: 200 }, ada.cookie)
  expect(rest).toMatchObject({ cells: { length: 25 }, next_cursor: null })
  // The same list, spelt differently.
  const same = { kind, cursor, order_by: 'created_at', order_direction: 'desc', limit: null } as const
  expect(await list(test, { ...same, acting: ada.actor_id.toUpperCase() }, ada.cookie)).toEqual(rest)
})

it('a bad cursor is one issue for every cause, before the rules across fields', async () => {
  const issues = [{ path: ['cursor'], code: 'invalid_cursor', message: expect.any(String) }]
  const half = cursor.slice(0, cursor.length / 2)
  const flipped = cursor.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'))
  for (const bad of ['', 'A', half, flipped, `${cursor}A`, 'a'.repeat(512), 'a'.repeat(513), 'a.b', 5, {}]) {
    const { json } = await rpc(
      test.url,
      { jsonrpc: '2.0', id: 1, method: 'cell_list', params: { kind, cursor: bad } },
      { cookie: ada.cookie },
    )
    expect(json).toMatchObject({ error: { data: { reason: 'invalid_params', issues } } })
  }
  const anonymous = { cursor, created_by: ada.actor_id }
  expect(await reasonOf(list(test, anonymous))).toBe('invalid_params')
})

it('a cursor survives a key rotation, but not the removal of its key', async () => {
  const [old, next] = ['test-key-test-key-test-key-test-key-1', 'next-key-next-key-next-key-next-key-2']
  const node = (cookie_keys: string[]) => testService({ database_url: test.databaseUrl, cookie_keys })
  const [turned, replaced] = await Promise.all([node([next, old]), node([next])])
  const anonymous = (await list(test, { kind, limit: 25 })).next_cursor as string
  expect(await list(turned, { kind, cursor: anonymous })).toMatchObject({ cells: { length: 5 } })
  expect(await reasonOf(list(replaced, { kind, cursor: anonymous }))).toBe('invalid_params')
  await Promise.all([turned.close(), replaced.close()])
})
