import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { sql } from '../db/db.ts'
import { createInvite } from '../invites/invite_create.ts'
import { setSettings } from '../settings/app_settings_update.ts'
import { type TestService, testService } from '../testing/index.ts'

const limits = {
  limit_signup_ip: 'off',
  limit_signup_username: 'off',
  limit_signup_open_ip: 'off',
} as const
const test = await testService(limits)
/** A second node on the same database. */
const node = await testService({ ...limits, database_url: test.databaseUrl })
afterAll(async () => {
  await node.close()
  await test.close()
})

const operator = { via: 'testing' }
const open = (open_signup: boolean, on = test) => setSettings(on.service.app, { open_signup }, operator)
beforeEach(() => open(false))

const run = (text: string) => test.service.app.db.run(sql.raw(text))
const rows = (...query: Parameters<typeof sql>) => test.service.app.db.rows(sql(...query))
const signUp = (on: TestService, username: string, email?: string) =>
  send(on, 'POST /signup', { body: { username, email, password: 'a long password' } })
const statusOf = async (...attempt: Parameters<typeof signUp>) => (await signUp(...attempt)).status
/** Runs the attempt, and the change to the database while it hashes the password. */
async function whileHashing<T>(change: () => Promise<unknown>, attempt: () => Promise<T>): Promise<T> {
  const { passwords } = test.service.app
  const { hash } = passwords
  const spy = vi.spyOn(passwords, 'hash').mockImplementationOnce(async (typed) => {
    await change()
    return await hash(typed)
  })
  return await attempt().finally(() => spy.mockRestore())
}

describe('open_signup', () => {
  it('takes effect at the very next request, on every node, whoever toggled it', async () => {
    const seen: number[] = []
    for (let n = 0; n < 20; n++) {
      await open(n % 2 === 0, n % 4 < 2 ? test : node)
      seen.push(await statusOf(test, `toggle_a${n}`), await statusOf(node, `toggle_b${n}`))
    }
    expect(seen).toEqual(Array(10).fill([200, 200, 403, 403]).flat())
  })

  it('must be true before and after the hashing: closed meanwhile is closed', async () => {
    await open(true)
    const closes = () => open(false, node)
    expect(await whileHashing(closes, () => statusOf(test, 'too_late'))).toBe(403)
    const audit = await rows`
      select metadata ->> 'open_signup' as open_signup from audit_entries()
      where event_type = 'signup' order by written desc limit 1`
    expect(audit).toEqual([{ open_signup: 'false' }])
    await open(true)
    await createInvite(test.service.app, { username: 'in_time' }, operator)
    expect(await whileHashing(closes, () => statusOf(test, 'in_time'))).toBe(200)
    expect(await rows`select from invite where username = 'in_time' and claimed_at is not null`).toHaveLength(
      1,
    )
  })

  it('opened meanwhile comes too late for the attempt', async () => {
    expect(
      await whileHashing(
        () => open(true, node),
        () => statusOf(test, 'too_soon'),
      ),
    ).toBe(403)
    expect(await statusOf(test, 'too_soon')).toBe(200)
  })

  it('is closed where the row of settings is missing', async () => {
    await run('delete from app_settings')
    expect(await statusOf(test, 'rowless')).toBe(403)
    await run('insert into app_settings (id) values (1)')
  })
})

describe('open signups that race', () => {
  beforeEach(() => open(true))

  it('for one username: one gets it, the other 409, 200 times', async () => {
    for (let round = 0; round < 20; round++) {
      const names = Array.from({ length: 10 }, (_, n) => `race${round}_${n}`)
      const seen = await Promise.all(
        names.map(async (name) =>
          (await Promise.all([statusOf(test, name), statusOf(node, name)])).sort().join(),
        ),
      )
      expect(seen).toEqual(Array(10).fill('200,409'))
    }
    expect(await rows`select from account where username like 'race%'`).toHaveLength(200)
  })

  it('ten at once for one username: one gets it, nine 409', async () => {
    const seen = await Promise.all(
      Array.from({ length: 10 }, (_, n) => statusOf(n % 2 === 0 ? test : node, 'ten_at_once')),
    )
    expect(seen.sort()).toEqual([200, ...Array(9).fill(409)])
  })

  it('for one e-mail and for names crosswise: no deadlock reaches a caller', async () => {
    for (let round = 0; round < 10; round++) {
      const seen = await Promise.all(
        Array.from({ length: 10 }, (_, n) =>
          statusOf(n % 2 === 0 ? test : node, `x${round}_${n % 5}`, `x${round}_${(n * 3) % 4}@x.example`),
        ),
      )
      expect(seen.every((status) => status === 200 || status === 409)).toBe(true)
      expect(seen).toContain(200)
    }
  })
})

describe('a signup whose commit fails', () => {
  beforeAll(async () => {
    await run(`
      create function fail_signup() returns trigger language plpgsql as $$
        begin raise exception 'the commit fails'; end $$`)
    await run(`
      create constraint trigger fail_signup after insert on account deferrable initially deferred
        for each row when (new.username = 'doomed') execute function fail_signup()`)
  })

  it('makes nothing and sets no cookie, leaves the invite claimable and one failure row', async () => {
    const { id } = await createInvite(test.service.app, { email: 'Doomed@x.example' }, operator)
    const reply = await signUp(test, 'doomed', 'doomed@x.example')
    expect([reply.status, reply.json, reply.cookie]).toEqual([500, { error: 'internal_error' }, undefined])
    expect(await rows`select from account where username = 'doomed'`).toEqual([])
    expect(await rows`select claimed_at, claimed_by from invite where id = ${id}`).toEqual([
      { claimed_at: null, claimed_by: null },
    ])
    expect(
      await rows`
        select event_type, outcome from audit_entries()
        where metadata ->> 'invite_id' = ${id} and event_type = 'signup'`,
    ).toEqual([{ event_type: 'signup', outcome: 'failure' }])
    expect(await statusOf(test, 'saved', 'doomed@x.example')).toBe(200)
  })
})
