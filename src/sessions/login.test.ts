import { hash as argonHash } from '@node-rs/argon2'
import { describe, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sha256Hex } from '../auth/secrets.ts'
import { sql } from '../db/db.ts'
import { createLog } from '../log/log.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const lines: string[] = []
const statements: string[] = []
const password = 'a long password'
const test = await serviceForFile({
  log: createLog('debug', { write: (line) => void lines.push(line) }),
  onStatement: (text) => void statements.push(text),
  limit_login_ip: 'off',
  limit_login_account: 'off',
  max_sessions: 'off',
})

const login = (username: string, typed = password) =>
  send(test, 'POST /login', { body: { username, password: typed } })
const loginScenario = (username: string, typed: string, expected: Parameters<typeof scenario>[2]) =>
  scenario(test, () => test.client().account.login({ username, password: typed }), expected)
const run = (...query: Parameters<typeof sql>) => test.service.app.db.run(sql(...query))
const rows = <T>(...query: Parameters<typeof sql>) => test.service.app.db.rows<T>(sql(...query))
const deleteAccount = ({ id }: TestAccount) =>
  run`update account set deleted_at = now() where id = ${id}::uuid`
const storeHash = ({ id }: TestAccount, password_hash: string) =>
  run`update account set password_hash = ${password_hash} where id = ${id}::uuid`
const refused = (account_id: string | null) => ({
  reason: 'invalid_credentials',
  audit: [
    {
      event_type: 'login',
      outcome: 'failure' as const,
      account_id,
      actor_id: null,
      target_account_id: null,
      target_actor_id: null,
      ip: '127.0.0.1',
      metadata: { reason: 'invalid_credentials' },
    },
  ],
})

describe('a login', () => {
  it('answers ok with a cookie of 30 days, of whose token only the digest is stored', async () => {
    const ada = await test.account()
    const reply = await login(ada.username)
    expect([reply.status, reply.text]).toEqual([200, '{"ok":true}'])
    const [set, ...more] = reply.headers['set-cookie'] ?? []
    expect(more).toEqual([])
    const parts =
      /^svc_session=([\w-]{43})\.(\d+)\.[\w-]{43}; Max-Age=2592000; Path=\/; HttpOnly; Secure; SameSite=Strict$/.exec(
        set as string,
      )
    const [, token, expires] = parts as RegExpExecArray
    const id = sha256Hex(token as string)
    const { sessions } = await test.client(reply.cookie).account_session_list()
    const session = sessions.find((one) => one.id === id) as (typeof sessions)[number]
    expect(Date.parse(session.expires_at) - Date.parse(session.created_at)).toBe(2_592_000_000)
    expect(Number(expires)).toBe(Math.floor(Date.parse(session.expires_at) / 1000))
    const [stored] = await rows<{ text: string }>`
      select auth_session::text as text from auth_session where id = ${id}`
    expect(stored?.text).not.toContain(token)
  })

  it('leaves one audit row, of the account and without an actor', async () => {
    const ada = await test.account()
    await loginScenario(ada.username, password, {
      audit: [
        {
          event_type: 'login',
          account_id: ada.id,
          actor_id: null,
          target_account_id: null,
          target_actor_id: null,
          ip: '127.0.0.1',
        },
      ],
    })
    const [row] = await rows<{ session_id: string }>`
      select metadata ->> 'session_id' as session_id from audit_entries()
      where event_type = 'login' and account_id = ${ada.id}::uuid`
    const { sessions } = await ada.client.account_session_list()
    expect(sessions.map(({ id }) => id)).toContain(row?.session_id)
  })

  it('takes username or e-mail in any case and between spaces, composed or not', async () => {
    await test.account({ username: 'kim_s', email: 'Élodie.K@Example.com' })
    const folded = 'Élodie.K@Example.com'
    for (const name of ['kim_s', 'KIM_S', '  Kim_s\t', ` ${folded.toUpperCase()} `, folded.normalize('NFD')])
      expect([name, (await login(name)).status]).toEqual([name, 200])
    const foreign = [
      '\u212Aim_s',
      'kım_s',
      'kİm_s',
      'kim_ſ',
      'kim_s@example.com',
      'élodie.\u0130@example.com',
    ]
    for (const name of foreign) expect([name, (await login(name)).status]).toEqual([name, 401])
  })

  it('treats the sigmas of an e-mail as one letter', async () => {
    await test.account({ username: 'greek', email: 'οδος@Example.com' })
    for (const name of ['ΟΔΟΣ@example.com', 'οδοσ@example.com', 'οδος@example.com'])
      expect([name, (await login(name)).status]).toEqual([name, 200])
  })

  it('compares every code point of the password', async () => {
    const typed = '  Pässwörd 😀 12 '
    const ada = await test.account({ password: typed })
    expect((await login(ada.username, typed)).status).toBe(200)
    for (const other of [typed.trim(), typed.normalize('NFD'), typed.toLowerCase(), `${typed} `])
      expect((await login(ada.username, other)).status).toBe(401)
  })

  it.each([
    ['an empty password', { username: 'ada', password: '' }, 'password'],
    ['a password of 301 code points', { username: 'ada', password: '😀'.repeat(301) }, 'password'],
    ['a username of 256 code points', { username: 'a'.repeat(256), password }, 'username'],
    ['a username of spaces', { username: ' \t ', password }, 'username'],
    ['a NUL in the username', { username: 'a\0a', password }, 'username'],
    ['a number for a password', { username: 'ada', password: 1 }, 'password'],
    ['no username', { password }, 'username'],
    ['an unknown key', { username: 'ada', password, remember: true }, 'remember'],
  ])('with %s is 400 at that key, without an audit row', async (_what, body, key) => {
    await scenario(test, async () => {
      const { status, json, cookie } = await send(test, 'POST /login', { body })
      expect([status, cookie]).toEqual([400, undefined])
      expect(json).toMatchObject({ error: 'invalid_request_body', issues: [{ path: [key] }] })
    })
  })

  it('takes a password of 300 code points', async () => {
    expect((await login('nobody', '😀'.repeat(300))).status).toBe(401)
  })
})

describe('a refused login', () => {
  it('looks the same, byte for byte, whatever is wrong', async () => {
    const ada = await test.account({ username: 'ada_l', email: 'ada@l.example' })
    const gone = await test.account({ username: 'gone', email: 'gone@l.example' })
    const corrupt = await test.account({ username: 'corrupt' })
    await deleteAccount(gone)
    await storeHash(corrupt, 'no hash')
    const replies = await Promise.all([
      login('nobody'),
      login('nobody@l.example'),
      login(ada.username, 'wrong'),
      login('ada@l.example', 'wrong'),
      login(gone.username),
      login('gone@l.example'),
      login(corrupt.username),
    ])
    const [first] = replies
    expect(first).toMatchObject({ status: 401, json: { error: 'invalid_credentials' }, cookie: undefined })
    for (const { bare } of replies) expect(bare).toBe(first?.bare)
  })

  it('leaves a failure row that names the account only where it is known and live', async () => {
    const [ada, gone] = [await test.account(), await test.account()]
    await deleteAccount(gone)
    await loginScenario(ada.username, 'wrong', refused(ada.id))
    await loginScenario(gone.username, password, refused(null))
    await loginScenario('nobody', password, refused(null))
  })

  it('is what a corrupt stored hash ends in, and no failure of the service', async () => {
    const ada = await test.account()
    for (const stored of ['', '$argon2id$v=19$m=8,t=1,p=1$', '$2b$10$abcdefghijklmnopqrstuv']) {
      await storeHash(ada, stored)
      await loginScenario(ada.username, password, refused(ada.id))
    }
  })

  it('leaves no trace of what was typed, neither in the audit log nor in the log', async () => {
    const ada = await test.account()
    const [typedName, typedPassword] = ['typed-As-a-Username-1', 'typed-as-a-password-2']
    await login(typedName, typedPassword)
    await login(ada.username, typedPassword)
    await send(test, 'POST /login', { body: { username: typedName, password: [typedPassword] } })
    await send(test, 'POST /login', { body: `{"username":"${typedName}","password":"${typedPassword}"` })
    const [dump] = await rows<{
      text: string
    }>`select string_agg(audit_entries::text, '') as text from audit_entries()`
    for (const text of [dump?.text as string, lines.join('')]) {
      expect(text.length).toBeGreaterThan(100)
      for (const typed of [typedName, typedName.toLowerCase(), sha256Hex(typedName), typedPassword])
        expect(text).not.toContain(typed)
    }
  })
})

describe('a failing database', () => {
  it('at commit gives no cookie, no session and one failure row', async () => {
    const ada = await test.account()
    const { sessions: before } = await ada.client.account_session_list()
    await run`create or replace function no_commit() returns trigger language plpgsql
      as $$ begin raise exception 'commit refused'; end $$`
    await run`create constraint trigger no_commit after insert on auth_session
      deferrable initially deferred for each row when (new.account_id = ${sql.raw(`'${ada.id}'`)})
      execute function no_commit()`
    await loginScenario(ada.username, password, {
      reason: 'internal_error',
      audit: [{ event_type: 'login', outcome: 'failure', account_id: ada.id }],
    })
    const reply = await login(ada.username)
    expect([reply.status, reply.cookie]).toEqual([500, undefined])
    expect((await ada.client.account_session_list()).sessions).toEqual(before)
  })

  it('that cannot write the audit row lets the login through, and says so in the log', async () => {
    const ada = await test.account()
    await run`alter table audit_inbox add constraint no_row check (account_id is distinct from ${sql.raw(`'${ada.id}'`)})`
    const failures = test.service.app.audit.failures
    await loginScenario(ada.username, password, { audit: [] })
    expect(test.service.app.audit.failures).toBe(failures + 1)
    expect(lines.some((line) => line.includes('audit rows could not be written'))).toBe(true)
  })
})

describe('a hash of other parameters', () => {
  const old = { memoryCost: 16, timeCost: 2, parallelism: 1 }
  const account = ({ id }: TestAccount) => rows<{ password_hash: string; updated_at: string }>`
    select password_hash, updated_at from account where id = ${id}::uuid`

  it('is replaced by the login, without an audit row and with `updated_at` kept', async () => {
    const ada = await test.account()
    await storeHash(ada, await argonHash(password, old))
    const [before] = await account(ada)
    await loginScenario(ada.username, 'wrong', refused(ada.id))
    expect(await account(ada)).toEqual([before])
    await loginScenario(ada.username, password, { audit: [{ event_type: 'login' }] })
    const [after] = await account(ada)
    expect(after?.password_hash).toMatch(/^\$argon2id\$v=19\$m=8,t=1,p=1\$/)
    expect(after?.updated_at).toBe(before?.updated_at)
    await login(ada.username)
    expect(await account(ada)).toEqual([after])
  })

  it('is replaced once by ten parallel logins, which all succeed', async () => {
    const ada = await test.account()
    await storeHash(ada, await argonHash(password, old))
    statements.length = 0
    const replies = await Promise.all(Array.from({ length: 10 }, () => login(ada.username)))
    expect(replies.map(({ status }) => status)).toEqual(Array(10).fill(200))
    expect(statements.filter((text) => text.startsWith('update account set password_hash'))).toHaveLength(1)
    expect((await ada.client.account_session_list()).sessions).toHaveLength(11)
  })
})
