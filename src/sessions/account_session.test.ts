import { describe, expect, it } from 'vitest'
import { send, sessionIn } from '../../test/helpers/account-routes.ts'
import { tokenOf } from '../../test/helpers/callers.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sha256Hex } from '../auth/secrets.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile({ max_sessions: 'off', limit_login_ip: 'off', limit_login_account: 'off' })

const signIn = async ({ username, password }: TestAccount): Promise<string> => {
  const { cookie } = await send(test, 'POST /login', { body: { username, password } })
  return cookie as string
}
const run = (...query: Parameters<typeof sql>) => test.service.app.db.run(sql(...query))
/** Inserts sessions that begin and end this many seconds from now. */
const plant = ({ id }: TestAccount, ids: string[], began: number, ends: number) => run`
  insert into auth_session (id, account_id, created_at, expires_at)
  select one, ${id}::uuid, now() + ${began} * interval '1 second', now() + ${ends} * interval '1 second'
  from unnest(${ids}::text[]) as one`
const refused = (status: number, error: object) => ({ status, data: error })

describe('account_session_list', () => {
  it('shows the unexpired sessions of the own account alone, newest first, with exactly its keys', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    await plant(ada, ['a'.repeat(64)], -60, 60)
    await plant(ada, ['b'.repeat(64)], -120, 0)
    await plant(bob, ['c'.repeat(64)], -60, 60)
    await plant(ada, ['d'.repeat(64), 'e'.repeat(64)], -30, 60)
    const answer = await scenario(test, () => ada.client.account_session_list())
    const { sessions } = answer
    expect(sessions.map(({ id }) => id)).toEqual([
      sessionIn(ada.cookie),
      'e'.repeat(64),
      'd'.repeat(64),
      'a'.repeat(64),
    ])
    const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    for (const session of sessions)
      expect(session).toEqual({
        id: expect.any(String),
        account_id: ada.id,
        created_at: timestamp,
        expires_at: timestamp,
        current: session.id === sessionIn(ada.cookie),
        authenticated_at: timestamp,
        methods: session.id === sessionIn(ada.cookie) ? ['library'] : [],
        strong: false,
      })
  })

  it('marks no session as current for a call by token', async () => {
    const ada = await test.account()
    const { client } = await tokenOf(test, ada)
    const { sessions } = await client.account_session_list()
    expect(sessions).toMatchObject([{ id: sessionIn(ada.cookie), current: false }])
  })

  it('shows the newest 50', async () => {
    const ada = await test.account()
    const ids = Array.from({ length: 60 }, (_, i) => sha256Hex(`${ada.id} ${i}`))
    await plant(ada, ids, -60, 60)
    const { sessions } = await ada.client.account_session_list()
    const newest = ids.sort().reverse().slice(0, 49)
    expect(sessions.map(({ id }) => id)).toEqual([sessionIn(ada.cookie), ...newest])
  })
})

it('account_session_revoke ends the present session too: the answer comes, the next call is 401', async () => {
  const ada = await test.account()
  const session_id = sessionIn(ada.cookie)
  expect(await ada.client.account_session_revoke({ session_id })).toEqual({ ok: true, revoked: true })
  const next = await ada.client.try.account_session_revoke({ session_id })
  expect(next).toMatchObject({ ok: false, error: refused(401, { reason: 'authentication_required' }) })
})

describe('account_session_revoke_all', () => {
  it('ends every unexpired session of the own account, the present one included: then calls are 401', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const other = await signIn(ada)
    await plant(ada, [sha256Hex(ada.id)], -60, 0)
    const answer = await scenario(test, () => ada.client.account_session_revoke_all(), {
      audit: [
        {
          event_type: 'session_revoke_all',
          account_id: ada.id,
          actor_id: null,
          target_account_id: ada.id,
          target_actor_id: null,
          metadata: { count: 2, credential_type: 'session' },
        },
      ],
    })
    expect(answer).toEqual({ ok: true, count: 2 })
    for (const cookie of [ada.cookie, other])
      expect((await test.client(cookie).try.account_verify()).ok).toBe(false)
    expect((await bob.client.account_verify()).id).toBe(bob.id)
  })

  it('counts every session once among parallel calls, and writes no row for none', async () => {
    const ada = await test.account()
    const before = await test.service.app.db.rows(sql`select from audit_entries()`)
    const cookies = [ada.cookie, ...(await Promise.all([signIn(ada), signIn(ada), signIn(ada)]))]
    const outcomes = await Promise.all(
      cookies.map((one) => test.client(one).try.account_session_revoke_all()),
    )
    const counts = outcomes.flatMap((outcome) => (outcome.ok ? [outcome.result.count] : []))
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(4)
    const rows = await test.service.app.db.rows<{ event_type: string }>(sql`
      select event_type from audit_entries() order by written offset ${before.length}`)
    expect(rows.filter(({ event_type }) => event_type === 'session_revoke_all')).toHaveLength(
      counts.filter((count) => count > 0).length,
    )
  })
})

it('a batch that ends all sessions in its first entry is 401 from the second on', async () => {
  const ada = await test.account()
  const calls = ['account_session_revoke_all', 'account_verify', 'account_session_list']
  const reply = await fetch(`${test.url}/api/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', cookie: ada.cookie },
    body: JSON.stringify(calls.map((method, id) => ({ jsonrpc: '2.0', id, method }))),
  })
  expect(await reply.json()).toMatchObject([
    { id: 0, result: { ok: true, count: 1 } },
    { id: 1, error: { code: -32001 } },
    { id: 2, error: { code: -32001 } },
  ])
})

it('an account with several actors needs none for any of them', async () => {
  const ada = await test.account()
  await test.actor(ada.id, 'second')
  expect((await ada.client.account_session_list()).sessions).toHaveLength(1)
  const session_id = sessionIn(await signIn(ada))
  expect((await ada.client.account_session_revoke({ session_id })).revoked).toBe(true)
  expect((await ada.client.account_verify()).id).toBe(ada.id)
  expect((await ada.client.account_session_revoke_all()).count).toBe(1)
})

it.each([
  'account_session_list',
  'account_session_revoke',
  'account_session_revoke_all',
  'account_verify',
] as const)('%s is 401 without a credential, before its input is looked at', async (method) => {
  const call = test.client().try[method] as (input: object) => Promise<unknown>
  const error = refused(401, { reason: 'authentication_required' })
  expect(await call({ acting: 1, unknown: true })).toMatchObject({ ok: false, error })
  const ada = await test.account()
  const known = ada.client.try[method] as (input: object) => Promise<unknown>
  const issues = [{ code: 'unrecognized_keys' }]
  expect(await known({ session_id: 'a'.repeat(64), acting: ada.actor_id })).toMatchObject({
    ok: false,
    error: refused(400, { reason: 'invalid_params', issues }),
  })
})
