import { describe, expect, it } from 'vitest'
import { clearedCookie, send } from '../../test/helpers/account-routes.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sha256Hex } from '../auth/secrets.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile({ limit_login_account: '3/1800' })
const db = test.service.app.db

/** An account with a second factor, which is stored but never used here. */
async function guarded(): Promise<TestAccount> {
  const account = await test.account()
  await db.run(sql`insert into account_totp (account_id, secret_sealed, confirmed_at)
    values (${account.id}::uuid, 'x', now())`)
  return account
}
const login = ({ username, password }: TestAccount, typed = password) =>
  send(test, 'POST /login', { body: { username, password: typed } })
const flows = async ({ id }: TestAccount) =>
  (
    await db.rows<{ id: string }>(sql`
    select id from sign_in_flow where account_id = ${id}::uuid order by created_at`)
  ).map((row) => row.id)

describe('the right password of an account with a second factor', () => {
  it('opens no session, but begins a flow in a cookie of its own', async () => {
    const ada = await guarded()
    const { sessions } = await ada.client.account_session_list()
    const reply = await login(ada)
    expect([reply.status, reply.json]).toEqual([
      401,
      { error: 'second_factor_required', methods: ['totp'], expires_in: 300 },
    ])
    const [set, ...more] = reply.headers['set-cookie'] ?? []
    expect(more).toEqual([])
    const [, token] =
      /^svc_flow=([\w-]{43}); Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Strict$/.exec(set as string) ??
      []
    expect(await flows(ada)).toEqual([sha256Hex(token as string)])
    expect((await ada.client.account_session_list()).sessions).toEqual(sessions)
  })

  it('clears a broken session cookie beside the one of its flow', async () => {
    const { username, password } = await guarded()
    const sent = { body: { username, password }, cookie: 'svc_session=broken' }
    const { headers } = await send(test, 'POST /login', sent)
    expect(headers['set-cookie']).toEqual([expect.stringMatching(/^svc_flow=[\w-]{43}; /), clearedCookie])
  })

  it('leaves no audit row, and the charges of wrong passwords', async () => {
    const ada = await guarded()
    const { username, password } = ada
    await login(ada, 'a wrong password')
    await scenario(test, () => test.client().account.login({ username, password }), {
      reason: 'second_factor_required',
    })
    for (let i = 0; i < 2; i++) expect((await login(ada, 'a wrong password')).status).toBe(401)
    expect((await login(ada)).status).toBe(429)
  })
})

describe('flows', () => {
  it('are at most five per account; the oldest goes', async () => {
    const ada = await guarded()
    for (let i = 0; i < 5; i++) await login(ada)
    const before = await flows(ada)
    await login(ada)
    const after = await flows(ada)
    expect([before.length, after.length]).toEqual([5, 5])
    expect(after.slice(0, 4)).toEqual(before.slice(1))
  })

  it.each<[string, (ada: TestAccount) => Promise<unknown>]>([
    [
      'a change of the password',
      ({ client, password }) =>
        client.account.password({ current_password: password, new_password: 'another long password' }),
    ],
    [
      'a password set by an operator',
      ({ id }) =>
        test.service.operations.setPassword(
          { account_id: id, password: 'another long password' },
          { via: 'cli' },
        ),
    ],
    ['deletion of the account', ({ client }) => client.account_delete()],
  ])('end with %s', async (_what, change) => {
    const [ada, bob] = [await guarded(), await guarded()]
    await Promise.all([login(ada), login(bob)])
    await change(ada)
    expect([await flows(ada), (await flows(bob)).length]).toEqual([[], 1])
  })

  it('that have expired go with the cleanup', async () => {
    const [ada, bob] = [await guarded(), await guarded()]
    await Promise.all([login(ada), login(bob)])
    await db.run(sql`update sign_in_flow set expires_at = date_trunc('milliseconds', now())
      where account_id = ${ada.id}::uuid`)
    await test.service.operations.cleanUp()
    expect([await flows(ada), (await flows(bob)).length]).toEqual([[], 1])
  })
})
