import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { setSettings } from '../settings/app_settings_update.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const statements: string[] = []
const password = 'a long password'
const test = await serviceForFile({
  onStatement: (text) => void statements.push(text),
  limit_signup_ip: 'off',
  limit_signup_username: 'off',
  limit_signup_open_ip: 'off',
  max_sessions: 'off',
})
const admin = await test.account({ username: 'admin', roles: ['admin'] })

const open = (open_signup: boolean) => setSettings(test.service.app, { open_signup }, { via: 'testing' })
beforeEach(() => open(false))

const run = (...query: Parameters<typeof sql>) => test.service.app.db.run(sql(...query))
const first = <T>(...query: Parameters<typeof sql>) => test.service.app.db.first<T>(sql(...query))
const invite = async (input: Parameters<typeof admin.client.invite_create>[0]) =>
  (await admin.client.invite_create(input)).invite
const claimantOf = async (id: string) =>
  (await first<{ claimed_by: string | null }>`select claimed_by from invite where id = ${id}`)?.claimed_by
const signUp = (username: string, email?: string | null) =>
  send(test, 'POST /signup', { body: { username, password, email } })
const outcome = async (username: string, email?: string | null) => {
  const { status, json } = await signUp(username, email)
  return status === 200 ? 200 : [status, json]
}
const noInvite = [403, { error: 'no_matching_invite' }]
const conflict = [409, { error: 'signup_conflict' }]
const deleteAccount = ({ id }: TestAccount) =>
  run`update account set deleted_at = now() where id = ${id}::uuid`

describe('a signup with an invite', () => {
  it('makes an account with one actor, no role and a session, and claims the invite', async () => {
    const { id } = await invite({ username: 'Ada', email: 'ada@new.example' })
    const reply = await signUp('ADA', 'Ada@New.example')
    const { account, actor } = reply.json as { account: { id: string }; actor: { id: string } }
    expect([reply.status, reply.json]).toEqual([
      200,
      { ok: true, account: { id: account.id, username: 'ada' }, actor: { id: actor.id } },
    ])
    expect(reply.headers['set-cookie']).toEqual([
      expect.stringMatching(
        /^svc_session=[\w-]{43}\.\d+\.[\w-]{43}; Max-Age=2592000; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
      ),
    ])
    const status = await test.client(reply.cookie).account.status()
    expect(status).toEqual({
      account: {
        id: account.id,
        username: 'ada',
        email: 'Ada@New.example',
        email_verified: false,
        created_at: expect.any(String),
      },
      actor: { id: actor.id, name: 'ada' },
      role_grants: [],
    })
    expect(await first`select created_by from account where id = ${account.id}`).toEqual({
      created_by: admin.actor_id,
    })
    expect(await claimantOf(id)).toBe(account.id)
    expect((await send(test, 'POST /login', { body: { username: 'ada', password } })).status).toBe(200)
  })

  it('leaves one audit row, of the new account and its actor', async () => {
    const { id } = await invite({ username: 'audited' })
    const made = await scenario(test, () => test.client().account.signup({ username: 'audited', password }), {
      audit: [{ event_type: 'signup', target_account_id: null, target_actor_id: null, ip: '127.0.0.1' }],
    })
    const { sessions } = await admin.client.admin_session_list({ account_id: made?.account.id as string })
    expect(
      await first`select account_id, actor_id, metadata from audit_entries() where metadata ->> 'invite_id' = ${id}
        and event_type = 'signup'`,
    ).toEqual({
      account_id: made?.account.id,
      actor_id: made?.actor.id,
      metadata: { session_id: sessions[0]?.id, open_signup: false, invite_id: id },
    })
  })

  it('needs each identifier that the invite carries', async () => {
    await invite({ username: 'both', email: 'both@x.example' })
    expect(await outcome('both')).toEqual(noInvite)
    expect(await outcome('both', null)).toEqual(noInvite)
    expect(await outcome('both', 'other@x.example')).toEqual(noInvite)
    expect(await outcome('other', 'both@x.example')).toEqual(noInvite)
    expect(await outcome('both', 'both@x.example')).toBe(200)
  })

  it('to an e-mail takes any free username, and compares the e-mail folded', async () => {
    await invite({ email: 'É@fold.example' })
    expect(await outcome('anything')).toEqual(noInvite)
    expect(await outcome('anything', 'e@fold.example')).toEqual(noInvite)
    expect(await outcome('anything', 'E\u0301@FOLD.example')).toBe(200)
  })

  it('to a username takes any e-mail, also none', async () => {
    await invite({ username: 'no_mail' })
    await invite({ username: 'any_mail' })
    expect(await outcome('no_mail')).toBe(200)
    expect(await outcome('any_mail', 'any@mail.example')).toBe(200)
  })

  it.each([
    ['the older one of two that match', '2026-01-01', '2026-01-02'],
    ['of two of one moment the one with the lower id', '2026-01-02', '2026-01-02'],
  ])('claims %s', async (_what, firstDay, secondDay) => {
    // Once by username and once by e-mail; if the times differ, the ids are in the opposite order.
    for (const isByName of [true, false]) {
      const username = `two_${firstDay.slice(-1)}_${isByName}`
      const email = `${username}@x.example`
      const sorted = [randomUUID(), randomUUID()].sort()
      const [chosen, spared] = (firstDay === secondDay ? sorted : sorted.reverse()) as [string, string]
      const own = { name: [username, null], mail: [null, email] }
      for (const [id, day, [name, mail]] of [
        [spared, secondDay, isByName ? own.mail : own.name],
        [chosen, firstDay, isByName ? own.name : own.mail],
      ] as [string, string, [string | null, string | null]][])
        await run`insert into invite (id, created_at, username, email, email_key)
          values (${id}, ${day}, ${name}, ${mail}, ${mail})`
      const { json } = await signUp(username, email)
      expect(await claimantOf(chosen)).toBe((json as { account: { id: string } }).account.id)
      expect(await claimantOf(spared)).toBeNull()
    }
  })

  it('that is expired, claimed or deleted is refused; a new invite lets in', async () => {
    const expired = await invite({ username: 'lapsed' })
    await run`update invite set expires_at = date_trunc('milliseconds', now()) where id = ${expired.id}::uuid`
    expect(await outcome('lapsed')).toEqual(noInvite)
    await invite({ username: 'lapsed', expires_at: '2100-01-01T00:00:00Z' })
    expect(await outcome('lapsed')).toBe(200)
    expect(await outcome('lapsed')).toEqual(noInvite)
    const deleted = await invite({ username: 'withdrawn' })
    await admin.client.invite_delete({ invite_id: deleted.id })
    expect(await outcome('withdrawn')).toEqual(noInvite)
  })

  it('and a taken name, also of a deleted account, is 409 and leaves the invite to a free one', async () => {
    await test.account({ username: 'taken1' })
    await deleteAccount(await test.account({ username: 'taken2' }))
    const { id } = await invite({ email: 'claims@x.example' })
    expect(await outcome('taken1', 'claims@x.example')).toEqual(conflict)
    expect(await outcome('taken2', 'claims@x.example')).toEqual(conflict)
    expect(await claimantOf(id)).toBeNull()
    expect(await outcome('free1', 'claims@x.example')).toBe(200)
  })

  it('ends the session of another account whose cookie came along', async () => {
    const old = await test.account()
    await invite({ username: 'switches' })
    const client = test.client(old.cookie)
    const body = { username: 'switches', password }
    await scenario(test, () => client.account.signup(body), {
      audit: [
        { event_type: 'signup' },
        { event_type: 'session_revoke', account_id: old.id, target_account_id: old.id },
      ],
    })
    await expect(old.client.account_verify()).rejects.toMatchObject({ reason: 'authentication_required' })
    expect((await client.account_verify()).username).toBe('switches')
  })
})

describe('a signup while signup is open', () => {
  beforeEach(() => open(true))

  it('needs no invite and claims none', async () => {
    const { id } = await invite({ username: 'invited' })
    const made = await scenario(test, () => test.client().account.signup({ username: 'invited', password }), {
      audit: [{ event_type: 'signup' }],
    })
    expect(await claimantOf(id)).toBeNull()
    expect(
      await first`
      select created_by, metadata - 'session_id' as metadata
      from account join audit_entries() on audit_entries.account_id = account.id
      where account.id = ${made?.account.id} and event_type = 'signup'`,
    ).toEqual({
      created_by: null,
      metadata: { open_signup: true },
    })
  })

  it('answers a taken username and a taken e-mail alike, byte for byte, with a failure row each', async () => {
    await test.account({ username: 'clash', email: 'Clash@x.example' })
    const replies = [await signUp('CLASH'), await signUp('fresh', 'cLASH@x.example')]
    expect(replies[0]?.json).toEqual({ error: 'signup_conflict' })
    expect(replies[0]?.bare).toBe(replies[1]?.bare)
    expect(replies[0]?.status).toBe(409)
    for (const body of [
      { username: 'clash', password },
      { username: 'fresh', password, email: 'clash@x.example' },
    ])
      await scenario(test, () => test.client().account.signup(body), {
        reason: 'signup_conflict',
        audit: [
          {
            event_type: 'signup',
            outcome: 'failure',
            actor_id: null,
            account_id: null,
            target_account_id: null,
            ip: '127.0.0.1',
            metadata: { reason: 'signup_conflict', open_signup: true },
          },
        ],
      })
  })
})

describe('a signup while signup is closed, without an invite', () => {
  it('answers a taken and a free name alike, byte for byte, after the same work', async () => {
    await test.account({ username: 'occupied', email: 'occupied@x.example' })
    const attempts = [
      ['occupied', undefined],
      ['unknown', undefined],
      ['unknown', 'occupied@x.example'],
    ] as const
    const hash = vi.spyOn(test.service.app.passwords, 'hash')
    const seen = []
    for (const [username, email] of attempts) {
      statements.length = 0
      hash.mockClear()
      const { bare } = await signUp(username, email)
      seen.push([bare, hash.mock.calls.length, ...statements])
    }
    hash.mockRestore()
    expect(seen[0]?.[0]).toMatch(/^403\n/)
    expect(seen[0]?.[1]).toBe(1)
    expect(seen[1]).toEqual(seen[0])
    expect(seen[2]).toEqual(seen[0])
  })

  it('leaves a failure row without any identity', async () => {
    await scenario(test, () => test.client().account.signup({ username: 'admin', password }), {
      reason: 'no_matching_invite',
      audit: [
        {
          event_type: 'signup',
          outcome: 'failure',
          actor_id: null,
          account_id: null,
          target_account_id: null,
          target_actor_id: null,
          ip: '127.0.0.1',
          metadata: { reason: 'no_matching_invite', open_signup: false },
        },
      ],
    })
  })
})
