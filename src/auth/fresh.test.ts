import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { send } from '../../test/helpers/account-routes.ts'
import { daemonHeaders, tokenOf } from '../../test/helpers/callers.ts'
import { call, dataOf, rpc } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'

const auth = { account: 'required', actor: 'none', credential_types: ['session', 'daemon_token'] } as const
const actions = {
  dangerous: mutation({
    doc: 'Needs a fresh session.',
    auth: { ...auth, fresh: true },
    event: 'account_update',
    input: z.strictObject({ text: z.string() }),
    output: z.null(),
    handler: async () => null,
  }),
}
const test = await serviceForFile({ actions, step_up: 'all' })
const db = test.service.app.db

const age = ({ id }: TestAccount, seconds: number) =>
  db.run(sql`update auth_session set authenticated_at = now() - ${seconds}::int * interval '1 second'
    where account_id = ${id}::uuid`)
const ask = async (headers: Record<string, string>, params: object = { text: 'x' }) =>
  dataOf(await rpc(test.url, call('dangerous', params), headers))
const stale = { reason: 'fresh_authentication_required', max_age: 600, methods: ['password'] }

describe('a method that needs a fresh session', () => {
  it('takes one proven 599 seconds ago, and none proven 601 seconds ago', async () => {
    const ada = await test.account()
    expect(await ask({})).toMatchObject({ reason: 'authentication_required' })
    expect(await ask({ cookie: ada.cookie })).toBeUndefined()
    await age(ada, 599)
    expect(await ask({ cookie: ada.cookie })).toBeUndefined()
    await age(ada, 601)
    expect(await ask({ cookie: ada.cookie })).toEqual(stale)
  })

  it('takes none proven before the clock of the database was set back', async () => {
    const ada = await test.account()
    await age(ada, -3600)
    expect(await ask({ cookie: ada.cookie })).toEqual(stale)
  })

  it('refuses before it looks at the input, and tokens for their type', async () => {
    const ada = await test.account()
    await age(ada, 10)
    const { headers } = await tokenOf(test, ada)
    await age(ada, 601)
    expect(await ask({ cookie: ada.cookie }, { wrong: 1 })).toEqual(stale)
    expect(await ask(headers, { wrong: 1 })).toMatchObject({ reason: 'credential_type_required' })
  })

  it('takes a daemon token', async () => {
    await test.account({ roles: ['keeper'] })
    expect(await ask(daemonHeaders(test))).toBeUndefined()
  })

  it('takes only a strong session of an account with a second factor', async () => {
    const ada = await test.account()
    await db.run(sql`insert into account_totp (account_id, secret_sealed, confirmed_at)
      values (${ada.id}::uuid, 'x', now())`)
    expect(await ask({ cookie: ada.cookie })).toEqual(stale)
    await db.run(sql`update auth_session set strong = true where account_id = ${ada.id}::uuid`)
    expect(await ask({ cookie: ada.cookie })).toBeUndefined()
  })
})

describe('with step_up "all"', () => {
  const full = { scope: { kind: 'full' }, lifetime: { kind: 'eternal' } } as const

  it('a token of scope full needs a fresh session, a narrower one does not', async () => {
    const ada = await test.account()
    await age(ada, 601)
    const refused = await ada.client.try.account_token_create(full)
    expect(refused).toMatchObject({ ok: false, error: { data: stale } })
    await ada.client.account_token_create({ ...full, scope: { kind: 'read_only' } })
    await age(ada, 599)
    await ada.client.account_token_create(full)
  })

  it('so does deleting the own account by session, but not another one as admin', async () => {
    const [ada, root] = await Promise.all([test.account(), test.account({ roles: ['admin'] })])
    await Promise.all([age(ada, 601), age(root, 601)])
    expect(await ada.client.try.account_delete()).toMatchObject({ ok: false, error: { data: stale } })
    expect(await root.client.account_delete({ account_id: ada.id })).toMatchObject({ deleted: true })
    await age(root, 10)
    await test.account({ roles: ['admin'] })
    expect(await root.client.account_delete()).toMatchObject({ deleted: true })
  })
})

it('what a session has proven, and when, is in its list entry', async () => {
  const ada = await test.account()
  const { cookie } = await send(test, 'POST /login', {
    body: { username: ada.username, password: ada.password },
  })
  const { sessions } = await test.client(cookie).account_session_list()
  const [newest] = sessions as [(typeof sessions)[number]]
  expect(newest).toMatchObject({ methods: ['password'], strong: false })
  expect(newest.authenticated_at).toBe(newest.created_at)
})
