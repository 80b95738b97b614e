import { hash as argonHash } from '@node-rs/argon2'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { rival } from '../../test/helpers/race.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount, type TestService, testService } from '../testing/index.ts'

const password = 'a long password'
const cheap = { memoryCost: 8, timeCost: 1, parallelism: 1 }
const noLimits = { limit_login_ip: 'off', limit_login_account: 'off', max_sessions: 'off' } as const
const test = await testService(noLimits)
const other = await rival(test.databaseUrl)
afterAll(async () => {
  await other.close()
  await test.close()
})

const login = ({ username }: TestAccount, typed = password) =>
  send(test, 'POST /login', { body: { username, password: typed } })
const change = ({ cookie }: TestAccount, current_password: string, new_password: string) =>
  send(test, 'POST /password', { cookie, body: { current_password, new_password } })
const sessionCount = async ({ id }: TestAccount): Promise<number> =>
  (await test.service.app.db.rows(sql`select from auth_session where account_id = ${id}::uuid`)).length

/** Sets the stored hash to each of these passwords in turn, as soon as the attempt has verified the previous one. */
async function changingHash<T>(
  { id }: TestAccount,
  passwords: string[],
  attempt: () => Promise<T>,
): Promise<T> {
  const { passwords: own, db } = test.service.app
  const { verify } = own
  const spy = vi.spyOn(own, 'verify')
  for (const next of passwords) {
    const stored = await argonHash(next, cheap)
    spy.mockImplementationOnce(async (...given) => {
      const isRight = await verify(...given)
      await db.run(sql`update account set password_hash = ${stored} where id = ${id}::uuid`)
      return isRight
    })
  }
  return await attempt().finally(() => spy.mockRestore())
}

describe('a stored hash that changes while its password is verified', () => {
  it.each([1, 2])('%i times, to the same password: the login succeeds', async (times) => {
    const ada = await test.account()
    const reply = await changingHash(ada, Array(times).fill(password), () => login(ada))
    expect([reply.status, await sessionCount(ada)]).toEqual([200, 2])
  })

  it('three times: the login fails, for it verifies again at most twice', async () => {
    const ada = await test.account()
    const reply = await changingHash(ada, Array(3).fill(password), () => login(ada))
    expect([reply.status, reply.json, await sessionCount(ada)]).toEqual([
      401,
      { error: 'invalid_credentials' },
      1,
    ])
  })

  it('to another password: the login fails as any wrong one, with its audit row', async () => {
    const ada = await test.account()
    await scenario(
      test,
      () =>
        changingHash(ada, ['another password'], () =>
          test.client().account.login({ username: ada.username, password }),
        ),
      {
        reason: 'invalid_credentials',
        audit: [{ event_type: 'login', outcome: 'failure', account_id: ada.id }],
      },
    )
    expect(await sessionCount(ada)).toBe(1)
  })

  it.each([1, 2])('%i times, to the same password: a password change succeeds', async (times) => {
    const ada = await test.account()
    const reply = await changingHash(ada, Array(times).fill(password), () =>
      change(ada, password, 'a new password'),
    )
    expect(reply.status).toBe(200)
    expect((await login(ada, 'a new password')).status).toBe(200)
  })

  it.each([
    ['three times', Array(3).fill(password)],
    ['to another password', ['another password']],
  ])('%s: a password change fails as a concurrent one, session and cookie stay', async (_when, passwords) => {
    const ada = await test.account()
    await scenario(
      test,
      () =>
        changingHash(ada, passwords, () =>
          ada.client.account.password({ current_password: password, new_password: 'a new password' }),
        ),
      {
        reason: 'invalid_credentials',
        audit: [
          {
            event_type: 'password_change',
            outcome: 'failure',
            account_id: ada.id,
            metadata: { reason: 'concurrent_change', credential_type: 'session' },
          },
        ],
      },
    )
    expect((await ada.client.account_verify()).id).toBe(ada.id)
  })
})

describe('an account deleted while its password is verified', () => {
  const during = async <T>({ id }: TestAccount, attempt: () => Promise<T>): Promise<T> => {
    await other.begin('update account set deleted_at = now() where id = $1', [id])
    return await other.release(attempt())
  }

  it('is one that the login does not know: 401, and no account in the audit row', async () => {
    const ada = await test.account()
    const { username } = ada
    await scenario(test, () => during(ada, () => test.client().account.login({ username, password })), {
      reason: 'invalid_credentials',
      audit: [{ event_type: 'login', outcome: 'failure', account_id: null }],
    })
    expect(await sessionCount(ada)).toBe(1)
  })

  it('has vanished for a password change, and for revoking all its sessions', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const body = { current_password: password, new_password: 'a new password' }
    await scenario(test, () => during(ada, () => ada.client.account.password(body)), {
      reason: 'account_vanished',
    })
    await scenario(test, () => during(bob, () => bob.client.account_session_revoke_all()), {
      reason: 'account_vanished',
    })
  })
})

describe('a login that races a password change', () => {
  it('leaves no session made with the old password, 200 times', async () => {
    for (let round = 0; round < 20; round++) {
      const accounts = await Promise.all(Array.from({ length: 10 }, () => test.account()))
      const outcomes = await Promise.all(
        accounts.map(async (account) => {
          const [changed, entered] = await Promise.all([
            change(account, password, 'a new password'),
            login(account),
          ])
          return [changed.status, [200, 401].includes(entered.status), await sessionCount(account)]
        }),
      )
      expect(outcomes).toEqual(Array(10).fill([200, true, 0]))
    }
  })
})

it('two parallel password changes with the same current password: one succeeds, one fails as concurrent', async () => {
  for (const same of [false, true]) {
    const ada = await test.account()
    const next = same ? [password, password] : ['the first new one', 'the other new one']
    // Each waits for the other after verifying its current password, so the guards refuse neither.
    const { passwords } = test.service.app
    const { hash } = passwords
    const both = Promise.withResolvers<void>()
    let arrived = 0
    const spy = vi.spyOn(passwords, 'hash').mockImplementation(async (typed) => {
      if (++arrived === 2) both.resolve()
      await both.promise
      return await hash(typed)
    })
    const replies = await Promise.all(next.map((one) => change(ada, password, one)))
    spy.mockRestore()
    const [won, lost] = replies.sort((a, b) => a.status - b.status)
    expect([won?.status, lost?.status, lost?.json]).toEqual([200, 401, { error: 'invalid_credentials' }])
    expect([won?.cookie, lost?.cookie]).toEqual(['svc_session=', undefined])
    const rows = await test.service.app.db.rows(sql`
      select outcome, metadata ->> 'reason' as reason from audit_entries()
      where event_type = 'password_change' and account_id = ${ada.id}::uuid order by outcome`)
    expect(rows).toEqual([
      { outcome: 'failure', reason: 'concurrent_change' },
      { outcome: 'success', reason: null },
    ])
  }
})

describe('rotating the cookie keys', () => {
  const [older, newer] = ['older-key-'.repeat(4), 'newer-key-'.repeat(4)]
  const node = (cookie_keys: string[]) =>
    testService({ ...noLimits, database_url: test.databaseUrl, cookie_keys })

  it('by adding the new key last, moving it first, dropping the old one: no live session is lost on the way', async () => {
    const ring = await Promise.all([[older], [older, newer], [newer, older], [newer]].map(node))
    try {
      const [before, adding, moved, after] = ring as [TestService, TestService, TestService, TestService]
      const ada = await before.account({ username: 'rotating' })
      const later = await send(moved, 'POST /login', { body: { username: 'rotating', password } })
      const seen = async (cookie: string | undefined, nodes: TestService[]) =>
        await Promise.all(nodes.map(async (one) => (await send(one, 'GET /verify', { cookie })).status))
      expect(await seen(ada.cookie, [before, adding, moved])).toEqual([200, 200, 200])
      expect(await seen(later.cookie, [adding, moved, after])).toEqual([200, 200, 200])
      const dropped = await send(after, 'GET /verify', { cookie: ada.cookie })
      expect([dropped.status, dropped.cookie]).toEqual([401, 'svc_session='])
    } finally {
      await Promise.all(ring.map((one) => one.close()))
    }
  })
})
