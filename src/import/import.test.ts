import { describe, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { firebaseProject, foreignHashes, foreignPassword } from '../../test/helpers/foreign-hashes.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { failureFloor } from '../auth/failure-floor.ts'
import { sql } from '../db/db.ts'
import type { Imported, ImportOptions } from './import.ts'
import type { Refused } from './line.ts'

const test = await serviceForFile({
  ...{ limit_login_ip: 'off', limit_login_account: 'off', max_sessions: null },
  ...{ limit_signup_ip: 'off', limit_signup_open_ip: 'off' },
  login_fail_floor_ms: 1,
})
const { operations, app } = test.service
await operations.setSettings({ open_signup: true }, { via: 'test' })

type Line = Record<string, unknown>
const run = async (lines: Iterable<unknown>, options: Partial<ImportOptions> = {}) => {
  const refused: Refused[] = []
  const done: Imported = await operations.importAccounts(lines, {
    ...{ via: 'test', source: 'old', firebase: firebaseProject },
    on_refused: (one) => refused.push(one),
    ...options,
  })
  return { done, refused }
}
const counts = (imported: number, skipped: number, refused: number) =>
  expect.objectContaining({ lines: imported + skipped + refused, imported, skipped, refused })
const login = async (username: string, password: string) =>
  (await send(test, 'POST /login', { body: { username, password } })).status
const stored = (username: string) =>
  app.db.one<{
    id: string
    password_hash: string
    hash_foreign: boolean
    created_at: string
    email: string | null
  }>(sql`
    select id, password_hash, hash_foreign, created_at, email from account where username = ${username}`)
const count = async (prefix: string) =>
  (
    await app.db.one<{ n: number }>(
      sql`select count(*) as n from account where username like ${`${prefix}%`}`,
    )
  ).n
const floorMs = async () =>
  (await app.db.one<{ ms: number | null }>(sql`select import_floor_ms as ms from app_settings`)).ms

const cheap = '$2b$04$j3cEL7WP.9cjgzXfnZ1p3eSxbT2yh8vNgdciybPWH72zMKNb.lyjO'
const users = (prefix: string, number: number): Line[] =>
  Array.from({ length: number }, (_, at) => ({ username: `${prefix}-${at}`, external_id: `${prefix}:${at}` }))

describe('an imported hash', () => {
  const lines = foreignHashes.map(([, password], at) => ({ username: `hashed-${at}`, password }))

  it('is taken over, whichever library made it', async () => {
    expect(await run(lines)).toEqual({ done: counts(lines.length, 0, 0), refused: [] })
    // Only to keep the wrong passwords below from taking longer than they need.
    await app.db.run(sql`update app_settings set import_floor_ms = null`)
  })

  it.each(foreignHashes.map(([made], at) => [made, `hashed-${at}`]))(
    '%s: signs in once by itself, from then on as Argon2id',
    async (_made, username) => {
      expect(await login(username, `${foreignPassword} `)).toBe(401)
      expect(await stored(username)).toMatchObject({ hash_foreign: true })
      expect(await login(username, foreignPassword)).toBe(200)
      const { password_hash, hash_foreign } = await stored(username)
      expect([password_hash.startsWith('$argon2id$v=19$m=8,t=1,p=1$'), hash_foreign]).toEqual([true, false])
      expect(await login(username, foreignPassword)).toBe(200)
      expect(await login(username, `${foreignPassword} `)).toBe(401)
    },
  )

  it('is replaced once by ten first logins at a time, which all succeed', async () => {
    await app.db.run(sql`create table replaced (username text)`)
    await app.db.run(sql`create function note_replaced() returns trigger language plpgsql as
      'begin insert into replaced values (new.username); return null; end'`)
    await app.db.run(sql`create trigger note_replaced after update of password_hash on account
      for each row execute function note_replaced()`)
    await run([{ username: 'crowd', password: foreignHashes[0]?.[1] }])
    const all = await Promise.all(Array.from({ length: 10 }, () => login('crowd', foreignPassword)))
    expect(all).toEqual(Array(10).fill(200))
    expect(await app.db.rows(sql`select username from replaced`)).toEqual([{ username: 'crowd' }])
  })

  it('of an unsupported format or cost is refused with its line', async () => {
    const tail = cheap.slice(7)
    const bad: [password: unknown, reason: string][] = [
      [`$2x$04$${tail}`, 'hash_unsupported'],
      [`$2b$31$${tail}`, 'hash_too_costly'],
      [`$2b$03$${tail}`, 'hash_too_costly'],
      [cheap.slice(0, -1), 'hash_unsupported'],
      [`${cheap.slice(0, -1)}1`, 'hash_unsupported'],
      [`${cheap.slice(0, 28)}1${cheap.slice(29)}`, 'hash_unsupported'],
      ['5f4dcc3b5aa765d61d8327deb882cf99', 'hash_unsupported'],
      ['md5$salt$5f4dcc3b5aa765d61d8327deb882cf99', 'hash_unsupported'],
      ['a plain password', 'hash_unsupported'],
      [`scrypt$${2 ** 24}$salt$8$1$${'A'.repeat(86)}==`, 'hash_too_costly'],
      [`scrypt$1000$salt$8$1$${'A'.repeat(86)}==`, 'hash_unsupported'],
      [`$scrypt$ln=14,r=8,p=64$c2FsdA$${'A'.repeat(43)}`, 'hash_too_costly'],
      [`$scrypt$ln=16,r=1,p=1$c2FsdA$${'A'.repeat(43)}`, 'hash_unsupported'],
      [`pbkdf2_sha256$5000001$salt$${'A'.repeat(43)}=`, 'hash_too_costly'],
      [`pbkdf2_sha256$0$salt$${'A'.repeat(43)}=`, 'hash_too_costly'],
      ['pbkdf2_sha256$1000$salt$QUJD', 'hash_unsupported'],
      [`pbkdf2_sha256$1000$$${'A'.repeat(43)}=`, 'hash_unsupported'],
      ['$argon2id$v=19$m=1024,t=2,p=1$c2FsdHNhbHRzYWx0', 'hash_unsupported'],
      [`$argon2id$v=19$m=4194304,t=2,p=1$c2FsdHNhbHQ$${'A'.repeat(43)}`, 'hash_too_costly'],
      [{ hash: 'AAAA', salt: 'AAAA' }, 'hash_unsupported'],
      ['pbkdf2_sha256$1000$sa\0lt$QUJD', 'bad_format'],
      [{ credentialData: '{', secretData: '{}' }, 'bad_format'],
      [12, 'bad_format'],
    ]
    const lines = bad.map(([password], at) => ({ username: `refused-${at}`, password }))
    const { done, refused } = await run(lines, { source: 'bad' })
    expect(done).toEqual(counts(0, 0, bad.length))
    expect(refused.map(({ reason }) => reason)).toEqual(bad.map(([, reason]) => reason))
    expect(await count('refused-')).toBe(0)
  })

  it('of Firebase is refused without the parameters of its project', async () => {
    const found = foreignHashes.find(([made]) => made.startsWith('firebase'))
    const line = { username: 'firebase', password: found?.[1] }
    const { refused } = await run([line], { firebase: undefined as never })
    expect(refused).toEqual([{ line: 1, external_id: null, reason: 'hash_unsupported' }])
  })
})

describe('a line', () => {
  it('becomes an account with an actor and a row in the audit log, which names nobody', async () => {
    const line = {
      username: 'Grace-Hopper',
      email: 'Grace@Navy.example.org',
      email_verified: true,
      actor_name: 'Grace Hopper',
      created_at: '1943-12-01T12:00:00+01:00',
    }
    expect((await run([line])).done).toEqual(counts(1, 0, 0))
    const { id, ...account } = await stored('grace-hopper')
    expect(account).toMatchObject({ email: 'Grace@Navy.example.org', created_at: '1943-12-01T11:00:00.000Z' })
    expect(account).toMatchObject({ password_hash: '*', hash_foreign: false })
    expect(await operations.findAccount({ ref: 'grace@navy.EXAMPLE.org' })).toMatchObject({
      account: { id, email_verified: true },
      actors: [{ name: 'Grace Hopper' }],
    })
    const rows = await app.db.rows(sql`
      select event_type, outcome, account_id, metadata from audit_entries() where target_account_id = ${id}::uuid`)
    const metadata = { imported: true, via: 'test' }
    expect(rows).toEqual([{ event_type: 'account_create', outcome: 'success', account_id: null, metadata }])
  })

  it('without a password makes an account that no password signs in to', async () => {
    await run([{ username: 'passwordless' }])
    for (const password of ['*', 'a long password']) expect(await login('passwordless', password)).toBe(401)
  })

  it.each([
    ['no object', 'a line', undefined],
    ['not JSON', undefined, undefined],
    ['a bad name', { username: '1' }, 'username'],
    ['a bad e-mail', { username: 'bad-mail', email: 'nobody' }, 'email'],
    ['a time to come', { username: 'future', created_at: '2999-01-01T00:00:00Z' }, 'created_at'],
    ['a long id', { username: 'long-id', external_id: 'x'.repeat(256) }, 'external_id'],
    ['a role', { username: 'with-role', roles: ['admin'] }, undefined],
    ['a lone surrogate', { username: 'torn', actor_name: '\ud800' }, undefined],
  ])('that is %s is refused, with its key if that has a name here', async (_what, line, key) => {
    const { done, refused } = await run([{ username: `good-${Math.random().toString(36).slice(2)}` }, line])
    expect(done).toEqual(counts(1, 0, 1))
    expect(refused).toEqual([{ line: 2, external_id: null, reason: 'bad_format', ...(key && { key }) }])
  })

  it('whose name or e-mail is taken is refused, in the file and beside it', async () => {
    const bob = await test.account({ username: 'taken-bob', email: 'bob@example.org' })
    await app.db.run(sql`insert into username_reservation values ('reserved', ${bob.id}::uuid)`)
    const lines = [
      { username: 'TAKEN-bob', external_id: '1' },
      { username: 'bobby', email: 'BOB@example.org', external_id: '2' },
      { username: 'twice', email: 'twice@example.org', external_id: '3' },
      { username: 'twice', external_id: '4' },
      { username: 'twice-more', email: 'TWICE@example.org', external_id: '5' },
      { username: 'reserved', external_id: '6' },
      { username: 'again', external_id: '3' },
      { username: 'early-by-name', email: 'Twice@example.org', external_id: '7' },
    ]
    const refused = [
      { line: 1, external_id: '1', reason: 'username_taken' },
      { line: 2, external_id: '2', reason: 'email_taken' },
      { line: 4, external_id: '4', reason: 'username_taken' },
      { line: 5, external_id: '5', reason: 'email_taken' },
      { line: 6, external_id: '6', reason: 'username_taken' },
      { line: 8, external_id: '7', reason: 'email_taken' },
    ]
    const outcome = { done: counts(1, 1, 6), refused }
    expect(await run(lines, { dry_run: true, source: 'clashes' })).toEqual(outcome)
    expect(await run(lines, { source: 'clashes' })).toEqual(outcome)
    await expect(stored('reserved')).rejects.toThrow()
  })
})

describe('an import', () => {
  it('goes on where it stopped, and recognises lines by source and external id', async () => {
    const lines = users('resumed', 1203)
    const stop = new AbortController()
    const seen: number[] = []
    const on_progress: ImportOptions['on_progress'] = ({ lines }) => {
      seen.push(lines)
      stop.abort()
    }
    const { done } = await run(lines, { on_progress, signal: stop.signal })
    expect([done, seen]).toEqual([{ ...done, lines: 500, imported: 500, complete: false }, [500]])
    expect((await run(lines)).done).toEqual({
      ...done,
      lines: 1203,
      imported: 703,
      skipped: 500,
      complete: true,
    })
    expect((await run(lines)).done).toEqual(counts(0, 1203, 0))
    expect(await count('resumed-')).toBe(1203)
    expect((await run(lines.slice(0, 2), { source: 'another' })).refused).toMatchObject([
      { reason: 'username_taken' },
      { reason: 'username_taken' },
    ])
  })

  it('that fails at a refused line keeps the batches before it and nothing of its own', async () => {
    const lines = [...users('failing', 700), { username: 'failing-1', external_id: 'x' }, { username: '?' }]
    const first = await run(lines, { on_conflict: 'fail' })
    expect(first.refused).toEqual([{ line: 701, external_id: 'x', reason: 'username_taken' }])
    expect(first.done).toMatchObject({ imported: 500, refused: 1, complete: false })
    expect(await count('failing-')).toBe(500)
    lines.splice(700, 1)
    const second = await run(lines, { on_conflict: 'fail' })
    expect(second).toMatchObject({ refused: [{ line: 701, reason: 'bad_format' }], done: { imported: 200 } })
  })

  it('that fails names the first line that it refuses, and says what it kept, on trial too', async () => {
    await run([{ username: 'former-name' }, { username: 'held-name' }])
    const { id: account_id } = await stored('former-name')
    await operations.setUsername({ account_id, username: 'later-name' }, { via: 'test' })
    const lines = ['free-name', 'held-name', 'former-name'].map((username) => ({
      username,
      external_id: username,
    }))
    for (const dry_run of [true, false]) {
      const { done, refused } = await run(lines, { on_conflict: 'fail', source: 'clashing', dry_run })
      expect(refused).toEqual([{ line: 2, external_id: null, reason: 'username_taken' }])
      expect(done).toMatchObject({ imported: 0, refused: 1, complete: false })
    }
  })

  it('that runs twice at once makes each account once', async () => {
    const lines = users('parallel', 1500)
    const [one, two] = await Promise.all([run(lines), run(lines)])
    expect([one.refused, two.refused, one.done.imported + two.done.imported]).toEqual([[], [], 1500])
    expect(await count('parallel-')).toBe(1500)
  })

  it('racing signups for the same names leaves one holder of each', async () => {
    const lines = users('raced', 60)
    const signups = lines.map(({ username }) =>
      send(test, 'POST /signup', { body: { username, password: 'a long password' } }),
    )
    const [{ done, refused }, ...replies] = await Promise.all([run(lines, { source: 'race' }), ...signups])
    const lost = replies.filter(({ status }) => status !== 200)
    expect(new Set(lost.map(({ json }) => json?.error))).toEqual(new Set(['signup_conflict']))
    expect([done.imported, refused.length]).toEqual([lost.length, 60 - lost.length])
    expect(refused.every(({ reason }) => reason === 'username_taken')).toBe(true)
    expect(await count('raced-')).toBe(60)
  })

  it('on trial says the same and keeps nothing, not even the floor', async () => {
    await app.db.run(sql`update app_settings set import_floor_ms = null`)
    const lines = [...users('trial', 600), { username: 'trial-3', external_id: 'other', password: cheap }]
    const { done, refused } = await run(lines, { dry_run: true, source: 'trial' })
    expect(done).toEqual(counts(600, 0, 1))
    expect(refused).toEqual([{ line: 601, external_id: 'other', reason: 'username_taken' }])
    expect([await count('trial-'), await floorMs()]).toEqual([0, null])
  })

  it('refuses options of another shape', async () => {
    await expect(run([], { via: 'with space' })).rejects.toThrow(TypeError)
    await expect(run([], { source: '' })).rejects.toMatchObject({ data: { reason: 'invalid_params' } })
  })
})

describe('the floor of failed logins', () => {
  it('holds for every name while a foreign hash is left, and ends at a cleanup after the last', async () => {
    await app.db.run(sql`update account set hash_foreign = false`)
    await run([{ username: 'slow', password: foreignHashes[0]?.[1] }])
    expect(await floorMs()).toBeGreaterThan(0)
    // Instead of an expensive hash.
    const floor = 400
    await app.db.run(sql`update app_settings set import_floor_ms = ${floor}`)
    const native = await test.account()
    await operations.cleanUp()
    for (const name of ['slow', native.username, 'nobody-at-all']) {
      const begun = performance.now()
      expect(await login(name, 'a wrong password')).toBe(401)
      expect(performance.now() - begun).toBeGreaterThanOrEqual(floor)
    }
    expect(await login('slow', foreignPassword)).toBe(200)
    await operations.cleanUp()
    expect(await floorMs()).toBeNull()
  })

  it('never falls by a later import', async () => {
    await app.db.run(sql`update app_settings set import_floor_ms = 9000`)
    await run([{ username: 'later', password: cheap }])
    expect(await floorMs()).toBe(9000)
  })

  it('stays off where it is switched off', async () => {
    const off = { ...app.config, login_fail_floor_ms: 0, login_fail_jitter_ms: 0 }
    await failureFloor(off, 3_600_000)
  })
})
