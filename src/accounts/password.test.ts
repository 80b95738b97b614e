import { describe, expect, it, vi } from 'vitest'
import { clearedCookie, send, sessionIn } from '../../test/helpers/account-routes.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const password = 'a long password'
const next = 'the next password'
const test = await serviceForFile({ limit_login_ip: 'off', limit_login_account: 'off' })

const change = (cookie: string | undefined, body: unknown) => send(test, 'POST /password', { cookie, body })
const login = async ({ username }: TestAccount, typed: string) =>
  await send(test, 'POST /login', { body: { username, password: typed } })
const run = (...query: Parameters<typeof sql>) => test.service.app.db.run(sql(...query))
const envelope = (account: TestAccount) => ({
  account_id: account.id,
  actor_id: null,
  target_actor_id: null,
  ip: '127.0.0.1',
})
const failure = (account: TestAccount, reason: string) => ({
  event_type: 'password_change',
  outcome: 'failure' as const,
  ...envelope(account),
  target_account_id: null,
  metadata: { reason, credential_type: 'session' },
})

describe('a password change', () => {
  it('ends all sessions and all API tokens, clears the cookie, and lets only the new password in', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const other = await login(ada, password)
    await run`insert into api_token (id, account_id, name, token_hash, scope, expires_at) values
      ('tok_1', ${ada.id}, 'CLI', 'hash 1', '{}', null), ('tok_2', ${ada.id}, 'CLI', 'hash 2', '{}', now()),
      ('tok_3', ${bob.id}, 'CLI', 'hash 3', '{}', null)`
    const [before] = await test.service.app.db.rows<{ updated_at: string }>(sql`
      update account set updated_by = ${bob.actor_id}::uuid where id = ${ada.id}::uuid returning updated_at`)
    const reply = await scenario(
      test,
      () => change(ada.cookie, { current_password: password, new_password: next }),
      {
        audit: [
          {
            event_type: 'password_change',
            ...envelope(ada),
            target_account_id: ada.id,
            metadata: { sessions_revoked: 2, tokens_revoked: 2, credential_type: 'session' },
          },
        ],
      },
    )
    expect(reply).toMatchObject({ status: 200, json: { ok: true, sessions_revoked: 2, tokens_revoked: 2 } })
    expect(reply.headers['set-cookie']).toEqual([clearedCookie])
    for (const cookie of [ada.cookie, other.cookie])
      expect((await send(test, 'GET /verify', { cookie })).status).toBe(401)
    expect((await bob.client.account_verify()).id).toBe(bob.id)
    expect([(await login(ada, password)).status, (await login(ada, next)).status]).toEqual([401, 200])
    const [row] = await test.service.app.db.rows<{
      updated_at: string
      updated_by: null
      tokens: number
    }>(sql`
      select updated_at, updated_by, (select count(*) from api_token) as tokens
      from account where id = ${ada.id}::uuid`)
    expect(row).toMatchObject({ updated_by: null, tokens: 1 })
    expect((row as { updated_at: string }).updated_at > (before as { updated_at: string }).updated_at).toBe(
      true,
    )
  })

  it('may set the same password again', async () => {
    const ada = await test.account()
    const reply = await change(ada.cookie, { current_password: password, new_password: password })
    expect([reply.status, reply.json?.sessions_revoked, (await login(ada, password)).status]).toEqual([
      200, 1, 200,
    ])
  })

  it('hashes the new password as received', async () => {
    const ada = await test.account()
    const spaced = '  Pässwörd 😀 12 '
    await change(ada.cookie, { current_password: password, new_password: spaced })
    for (const [typed, status] of [
      [spaced, 200],
      [spaced.trim(), 401],
      [spaced.normalize('NFD'), 401],
    ] as const)
      expect((await login(ada, typed)).status).toBe(status)
  })

  it('works on an account with several actors without choosing one', async () => {
    const ada = await test.account()
    await test.actor(ada.id, 'second')
    const body = { current_password: password, new_password: next }
    await scenario(test, () => change(ada.cookie, body), {
      audit: [{ event_type: 'password_change', actor_id: null }],
    })
  })
})

describe('a refused password change', () => {
  it('for a wrong current password is 401 with its audit row; session, cookie and password stay', async () => {
    const ada = await test.account()
    const reply = await scenario(
      test,
      () => change(ada.cookie, { current_password: 'wrong', new_password: next }),
      { audit: [failure(ada, 'invalid_credentials')] },
    )
    expect(reply).toMatchObject({ status: 401, json: { error: 'invalid_credentials' }, cookie: undefined })
    expect((await ada.client.account_verify()).id).toBe(ada.id)
    expect([(await login(ada, next)).status, (await login(ada, password)).status]).toEqual([401, 200])
  })

  it('for a corrupt stored hash is 401, and no failure of the service', async () => {
    const ada = await test.account()
    await run`update account set password_hash = 'no hash' where id = ${ada.id}::uuid`
    const body = { current_password: password, new_password: next }
    const reply = await scenario(test, () => change(ada.cookie, body), {
      audit: [failure(ada, 'invalid_credentials')],
    })
    expect(reply).toMatchObject({ status: 401, cookie: undefined })
  })

  it.each([
    ['11 emoji', '😀'.repeat(11), 400],
    ['12 emoji', '😀'.repeat(12), 200],
    ['300 code points', 'é'.repeat(300), 200],
    ['301 code points', 'é'.repeat(301), 400],
  ])('or not, for a new password of %s', async (_what, new_password, status) => {
    const ada = await test.account()
    expect((await change(ada.cookie, { current_password: password, new_password })).status).toBe(status)
  })

  it.each([
    ['an empty current password', { current_password: '', new_password: next }, 'current_password'],
    [
      'a current password too long',
      { current_password: 'x'.repeat(301), new_password: next },
      'current_password',
    ],
    ['a key too many', { current_password: password, new_password: next, acting: 'x' }, 'acting'],
    ['no new password', { current_password: password }, 'new_password'],
  ])('for %s is 400 at that key, without an audit row', async (_what, body, key) => {
    const ada = await test.account()
    const reply = await scenario(test, () => change(ada.cookie, body))
    expect(reply).toMatchObject({
      status: 400,
      json: { error: 'invalid_request_body', issues: [{ path: [key] }] },
      cookie: undefined,
    })
  })

  it('without a session is 401, whatever the body says', async () => {
    for (const body of [
      '{',
      '[]',
      { current_password: 1 },
      { current_password: password, new_password: next },
    ])
      expect(await change(undefined, body)).toMatchObject({
        status: 401,
        json: { error: 'authentication_required' },
        cookie: undefined,
      })
    const headers = { 'content-type': 'text/plain' }
    expect((await send(test, 'POST /password', { body: 'x', headers })).status).toBe(401)
  })

  it('whose session ends while the password is verified is 401 without a row: nothing is changed', async () => {
    const ada = await test.account()
    const { passwords } = test.service.app
    const { hash } = passwords
    vi.spyOn(passwords, 'hash').mockImplementationOnce(async (typed) => {
      await run`delete from auth_session where id = ${sessionIn(ada.cookie)}`
      return await hash(typed)
    })
    const body = { current_password: password, new_password: next }
    const reply = await scenario(test, () => change(ada.cookie, body))
    expect(reply).toMatchObject({
      status: 401,
      json: { error: 'authentication_required' },
      cookie: undefined,
    })
    expect([(await login(ada, next)).status, (await login(ada, password)).status]).toEqual([401, 200])
  })

  it('by a failing commit changes nothing and leaves one failure row', async () => {
    const ada = await test.account()
    await run`create or replace function no_commit() returns trigger language plpgsql
      as $$ begin raise exception 'commit refused'; end $$`
    await run`create constraint trigger no_commit after update on account
      deferrable initially deferred for each row when (new.id = ${sql.raw(`'${ada.id}'`)}) execute function no_commit()`
    const body = { current_password: password, new_password: next }
    const reply = await scenario(test, () => change(ada.cookie, body), {
      audit: [{ event_type: 'password_change', outcome: 'failure', account_id: ada.id }],
    })
    expect(reply).toMatchObject({ status: 500, json: { error: 'internal_error' }, cookie: undefined })
    expect((await ada.client.account_verify()).id).toBe(ada.id)
    expect((await login(ada, password)).status).toBe(200)
  })
})

describe('an account without a password', () => {
  const bare = async () => {
    const ada = await test.account()
    await run`update account set password_hash = '*' where id = ${ada.id}::uuid`
    return ada
  }
  const new_password = 'a first long password'

  it('gets its first one with a fresh session, and everything ends', async () => {
    const ada = await bare()
    const reply = await change(ada.cookie, { new_password })
    expect([reply.status, reply.json]).toEqual([200, { ok: true, sessions_revoked: 1, tokens_revoked: 0 }])
    const { username } = ada
    expect((await send(test, 'POST /login', { body: { username, password: new_password } })).status).toBe(200)
  })

  it('needs a fresh session, and accepts no current password', async () => {
    const ada = await bare()
    expect((await change(ada.cookie, { new_password, current_password: '*' })).json).toEqual({
      error: 'invalid_credentials',
    })
    await run`update auth_session set authenticated_at = now() - interval '601 seconds'
      where account_id = ${ada.id}::uuid`
    expect((await change(ada.cookie, { new_password })).json).toEqual({
      error: 'fresh_authentication_required',
      max_age: 600,
      methods: [],
    })
  })

  it('sets one only once; an account that has one proves it', async () => {
    const ada = await bare()
    const replies = await Promise.all([1, 2].map(() => change(ada.cookie, { new_password })))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    const eve = await test.account()
    const refused = await change(eve.cookie, { new_password })
    expect([refused.status, refused.json]).toMatchObject([
      400,
      { error: 'invalid_request_body', issues: [{ path: ['current_password'], code: 'invalid_type' }] },
    ])
  })
})
