import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { freshIp, send } from '../../test/helpers/account-routes.ts'
import { bootstrapTest } from '../../test/helpers/bootstrap.ts'
import { sql } from '../db/db.ts'
import { scenario } from '../testing/index.ts'

const password = 'a long password'
const { open, directory } = bootstrapTest()

const refusedRow = (reason: string) => ({
  event_type: 'bootstrap',
  outcome: 'failure' as const,
  account_id: null,
  actor_id: null,
  target_account_id: null,
  target_actor_id: null,
  metadata: { reason },
})

describe('the one bootstrap', () => {
  it('makes an account with an actor, the roles keeper and admin and a session, and removes the token file', async () => {
    const { test, token, path, bootstrap } = await open()
    const reply = await scenario(test, () => bootstrap({ token, username: 'Root_1', password }), {
      audit: [{ event_type: 'bootstrap', target_account_id: null, target_actor_id: null }],
    })
    expect(reply.status).toBe(200)
    const { account, actor } = reply.json as { account: { id: string }; actor: { id: string } }
    expect(reply.json).toEqual({
      ok: true,
      account: { id: account.id, username: 'root_1' },
      actor: { id: actor.id },
    })
    expect(reply.headers['set-cookie']).toEqual([
      expect.stringMatching(
        /^svc_session=[^;]+; Max-Age=2592000; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
      ),
    ])
    const status = await send(test, 'GET /status', { cookie: reply.cookie })
    expect(status.json).toMatchObject({
      account: { id: account.id, username: 'root_1', email: null, email_verified: false },
      actor: { id: actor.id, name: 'root_1' },
    })
    const grants = (status.json as { role_grants: { id: string; role: string }[] }).role_grants
    expect(grants.map(({ role }) => role).sort()).toEqual(['admin', 'keeper'])
    for (const grant of grants)
      expect(grant).toMatchObject({ scope_kind: null, scope_id: null, expires_at: null, granted_by: null })
    const row = await test.service.app.db.first<{ metadata: { role_grant_ids: string[] } }>(sql`
      select account_id, actor_id, metadata from audit_entries()`)
    expect(row).toMatchObject({ account_id: account.id, actor_id: actor.id })
    expect(row?.metadata.role_grant_ids.sort()).toEqual(grants.map(({ id }) => id).sort())
    await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' })
    expect(await test.service.app.db.first(sql`select created_by from account`)).toEqual({ created_by: null })
  })

  it('happens once among 20 parallel requests to two nodes that share database and token file', async () => {
    const one = await open()
    const two = await open({ path: one.path, database_url: one.test.databaseUrl })
    const body = (i: number) => ({ token: one.token, username: `root_${i}`, password })
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? one : two).bootstrap(body(i), { ip: freshIp() })),
    )
    const [won, ...lost] = replies.sort((a, b) => a.status - b.status)
    expect([won?.status, won?.cookie?.startsWith('svc_session=')]).toEqual([200, true])
    for (const { status, json, cookie } of lost)
      expect([status, json, cookie]).toEqual([403, { error: 'already_bootstrapped' }, undefined])
    const keepers = await one.test.service.app.db.rows(sql`select from role_grant where role = 'keeper'`)
    expect(keepers).toHaveLength(1)
    const rows = await one.test.service.app.db.rows(sql`select event_type, outcome from audit_entries()`)
    expect(rows).toEqual([{ event_type: 'bootstrap', outcome: 'success' }])
  })

  it('is over for a request that finds the file gone because another one has just used it', async () => {
    const { test, token, bootstrap } = await open()
    const { isDone } = test.service.app.bootstrap
    vi.spyOn(test.service.app.bootstrap, 'isDone').mockImplementationOnce(async () => {
      const done = await isDone()
      expect((await bootstrap({ token, username: 'first', password })).status).toBe(200)
      return done
    })
    const late = await bootstrap({ token, username: 'late', password })
    expect([late.status, late.json]).toEqual([403, { error: 'already_bootstrapped' }])
  })

  it.each([
    ['is refused', 'constraint trigger', 'deferrable initially deferred', `raise exception 'no commit'`, 500],
    [
      'never comes, for the connection is killed',
      'trigger',
      '',
      'perform pg_terminate_backend(pg_backend_pid())',
      503,
    ],
  ])('whose commit %s leaves nothing but a usable token', async (_what, kind, when, act, status) => {
    const { test, token, bootstrap } = await open()
    const { db } = test.service.app
    await db.run(sql`create function no_commit() returns trigger language plpgsql as $$
      begin ${sql.raw(act)}; return null; end $$`)
    await db.run(sql`create ${sql.raw(kind)} no_commit after insert on auth_session ${sql.raw(when)}
      for each row execute function no_commit()`)
    const failed = await bootstrap({ token, username: 'root', password })
    expect([failed.status, failed.cookie]).toEqual([status, undefined])
    expect(await db.rows(sql`select from account`)).toEqual([])
    await db.run(sql`drop trigger no_commit on auth_session`)
    const outcomes = await db.rows(sql`select outcome from audit_entries()`)
    expect(outcomes).toEqual([{ outcome: 'failure' }])
    expect((await bootstrap({ token, username: 'root', password })).status).toBe(200)
  })

  it('ends the session of another account that the browser had, in a row that names its owner', async () => {
    const { test, token, bootstrap } = await open()
    const ada = await test.account()
    await scenario(test, () => bootstrap({ token, username: 'root', password }, { cookie: ada.cookie }), {
      audit: [
        { event_type: 'bootstrap' },
        { event_type: 'session_revoke', account_id: ada.id, target_account_id: ada.id },
      ],
    })
    expect((await send(test, 'GET /verify', { cookie: ada.cookie })).status).toBe(401)
  })

  it('refuses a username that an account has, and keeps the token for another', async () => {
    const { test, token, bootstrap } = await open()
    await test.account({ username: 'taken' })
    const reply = await scenario(test, () => bootstrap({ token, username: 'TAKEN', password }), {
      audit: [refusedRow('username_taken')],
    })
    expect([reply.status, reply.json, reply.cookie]).toEqual([409, { error: 'username_taken' }, undefined])
    expect((await bootstrap({ token, username: 'other', password })).status).toBe(200)
  })
})

describe('afterwards', () => {
  it('every further one is 403, without an audit row and whatever the limiter says; a bad body still 400', async () => {
    const { test, token, bootstrap } = await open()
    const ip = freshIp()
    for (let i = 0; i < 5; i++)
      expect((await bootstrap({ token: `wrong ${i}`, username: 'root', password }, { ip })).status).toBe(401)
    const limited = await bootstrap({ token, username: 'root', password }, { ip })
    expect([limited.status, limited.json?.error]).toEqual([429, 'rate_limit_exceeded'])
    expect(limited.headers['retry-after']).toBe(String(limited.json?.retry_after))
    expect((await bootstrap({ token, username: 'root', password }, { ip: freshIp() })).status).toBe(200)
    await scenario(test, async () => {
      for (const one of [token, 'wrong']) {
        const reply = await bootstrap({ token: one, username: 'root', password }, { ip })
        expect([reply.status, reply.json, reply.cookie]).toEqual([
          403,
          { error: 'already_bootstrapped' },
          undefined,
        ])
      }
      for (const body of [
        '{',
        '[]',
        {},
        { token, username: '1', password },
        { token, username: 'root', password: 'x' },
      ])
        expect((await bootstrap(body, { ip })).status).toBe(400)
    })
  })

  it('no token file is made by a start, one that is left is removed; before, the same file is kept', async () => {
    const { test, token, path, bootstrap } = await open()
    const database_url = test.databaseUrl
    const again = await open({ path, database_url })
    expect(again.token).toBe(token)
    expect((await bootstrap({ token, username: 'root', password })).status).toBe(200)
    await open({ path, database_url })
    await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' })
    await writeFile(path, `${token}\n`, { mode: 0o600 })
    await open({ path, database_url })
    await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' })
  })
})

describe('the token file', () => {
  it('is made at start with mode 0600, in a directory of 0700: 43 random characters and a newline', async () => {
    const dir = await directory()
    const { path, lines } = await open({ path: join(dir, 'not', 'there', 'token') })
    const content = await readFile(path, 'utf8')
    expect(content).toMatch(/^[A-Za-z0-9_-]{43}\n$/)
    const modes = await Promise.all(
      [path, join(dir, 'not', 'there')].map(async (one) => (await stat(one)).mode & 0o777),
    )
    expect(modes).toEqual([0o600, 0o700])
    expect(lines.join('')).not.toContain(content.trim())
  })

  it('is not made where an account exists, nor where bootstrap is disabled, whose route is 404', async () => {
    const { test } = await open()
    await test.account()
    const path = join(await directory(), 'token')
    const second = await open({ path, database_url: test.databaseUrl })
    await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' })
    expect((await send(second.test, 'GET /status')).json).toEqual({ error: 'authentication_required' })
    const off = await open({ bootstrap: 'disabled' })
    await expect(stat(off.path)).rejects.toMatchObject({ code: 'ENOENT' })
    const reply = await off.bootstrap({ token: 'x', username: 'root', password })
    expect([reply.status, reply.json]).toEqual([404, { error: 'not_found' }])
  })

  it('that cannot be made is logged, and the start goes on', async () => {
    const file = join(await directory(), 'file')
    await writeFile(file, '')
    const { test, lines } = await open({ path: join(file, 'token') })
    expect(lines.some((line) => line.includes('the bootstrap token file cannot be created'))).toBe(true)
    expect((await send(test, 'GET /status')).json).toEqual({ error: 'authentication_required' })
  })

  it('with white space around the token is read; a token with white space is another one', async () => {
    const { test, path, token, bootstrap } = await open()
    await writeFile(path, `\n  ${token}\t\n`)
    for (const wrong of [
      `${token}\n`,
      ` ${token}`,
      token.slice(0, -1),
      `${token}x`,
      token.toLowerCase(),
      'x'.repeat(43),
    ]) {
      const reply = await scenario(
        test,
        () => bootstrap({ token: wrong, username: 'root', password }, { ip: freshIp() }),
        {
          audit: [refusedRow('invalid_token')],
        },
      )
      expect([reply.status, reply.json, reply.cookie]).toEqual([401, { error: 'invalid_token' }, undefined])
    }
    expect((await bootstrap({ token, username: 'root', password })).status).toBe(200)
  })

  it('is announced by /status while it is usable, as false once used, and never to an account', async () => {
    const { test, token, path, bootstrap } = await open()
    const anonymous = async () => (await send(test, 'GET /status')).json
    const ada = await test.account()
    expect(await anonymous()).toEqual({ error: 'authentication_required', bootstrap_available: true })
    expect((await send(test, 'GET /status', { cookie: ada.cookie })).json).not.toHaveProperty(
      'bootstrap_available',
    )
    await chmod(path, 0o640)
    expect(await anonymous()).toEqual({ error: 'authentication_required' })
    await chmod(path, 0o400)
    expect(await anonymous()).toEqual({ error: 'authentication_required', bootstrap_available: true })
    expect((await bootstrap({ token, username: 'root', password })).status).toBe(200)
    expect(await anonymous()).toEqual({ error: 'authentication_required', bootstrap_available: false })
    await mkdir(path)
    expect(await anonymous()).toEqual({ error: 'authentication_required', bootstrap_available: false })
  })
})
