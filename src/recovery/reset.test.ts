import { beforeEach, describe, expect, it } from 'vitest'
import { freshIp, send } from '../../test/helpers/account-routes.ts'
import { settled, tokenOf } from '../../test/helpers/outbox.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { openSocket } from '../../test/helpers/sockets.ts'
import { sql } from '../db/db.ts'
import type { Message } from '../registry/messages.ts'
import { type TestAccount, testService } from '../testing/index.ts'

let sent: Message[] = []
const deliver = (message: Message): void => void sent.push(message)
const test = await serviceForFile({ trusted_proxies: ['127.0.0.1'], deliver })
const { app, operations } = test.service
const operator = { via: 'testing' }
let ada: TestAccount
let admin: TestAccount
beforeEach(async () => {
  await test.reset()
  sent = []
  ada = await test.account({ username: 'ada', email: 'ada@x.io' })
  admin = await test.account({ username: 'admin', roles: ['admin'] })
})

const fresh = 'an entirely new password'
const ask = (route: string, body: object, url = test, ip = freshIp()) => send(url, route, { body, ip })
const reset = (token: string, password = fresh, on = test) => ask('POST /reset', { token, password }, on)
const login = (password: string) => ask('POST /login', { username: 'ada', password })

async function mailedToken(): Promise<string> {
  await ask('POST /recover', { identifier: 'ada' })
  await settled(test)
  return tokenOf((sent.at(-1) as { link: string }).link)
}
const revealedToken = async (account_id = ada.id): Promise<string> =>
  tokenOf((await operations.createResetLink({ account_id }, operator)).link as string)

const rowsOf = (event_type: string) =>
  app.db.rows<{ outcome: string; metadata: object; target_account_id: string | null }>(sql`
    select outcome, metadata, target_account_id, account_id, actor_id from audit_entries()
    where event_type = ${event_type} order by written`)

it('mailed links work for an account whose e-mail another account has, as before folding changed', async () => {
  await app.db.run(sql`update account set email_key = ' ' || email_key where id = ${ada.id}::uuid`)
  const mailed = async () => {
    await settled(test)
    return tokenOf((sent.at(-1) as { link: string }).link)
  }
  await ada.client.account_email_verify_send()
  expect((await ask('POST /email_confirm', { token: await mailed() })).json).toEqual({ ok: true })
  await operations.createResetLink({ account_id: ada.id, send: true }, operator)
  expect((await reset(await mailed())).status).toBe(200)
})

it('sets the password, ends everything else, and proves the address', async () => {
  const token = await mailedToken()
  const other = await revealedToken()
  const { token: bearer } = await ada.client.account_token_create({
    ...{ scope: { kind: 'full' }, lifetime: { kind: 'eternal' } },
  })
  const socket = await openSocket(test.url, { cookie: ada.cookie })
  const { json, cookie } = await reset(token)
  expect([json, cookie]).toEqual([{ ok: true, sessions_revoked: 1, tokens_revoked: 1 }, undefined])
  await socket.closed
  await expect(ada.client.account_verify()).rejects.toMatchObject({ reason: 'authentication_required' })
  const { status } = await fetch(`${test.url}/api/account/verify`, {
    headers: { authorization: `Bearer ${bearer}` },
  })
  expect(status).toBe(401)
  expect((await login(ada.password)).status).toBe(401)
  expect((await login(fresh)).status).toBe(200)
  expect((await reset(other)).status).toBe(404)
  expect(await operations.findAccount({ ref: ada.id })).toMatchObject({
    account: { email_verified: true, updated_by: null },
  })
  expect(await rowsOf('password_reset')).toMatchObject([
    { outcome: 'success', target_account_id: ada.id, account_id: null, actor_id: null },
    { outcome: 'failure', target_account_id: null, metadata: { reason: 'ticket_not_found' } },
  ])
  await settled(test)
  expect(sent.at(-1)).toMatchObject({
    purpose: 'notice',
    notice: 'password_changed',
    to: 'ada@x.io',
    username: 'ada',
  })
})

it('a password that many use, or that is a name of the account, leaves the link open', async () => {
  const token = await revealedToken()
  for (const weak of ['qwertyqwerty', 'short']) expect((await reset(token, weak)).status).toBe(400)
  await app.db.run(
    sql`update account set username = 'ada-of-lovelace', hash_foreign = true where id = ${ada.id}::uuid`,
  )
  const { status, json } = await reset(token, 'ADA-of-lovelace')
  expect([status, json]).toMatchObject([400, { issues: [{ path: ['password'], code: 'password_common' }] }])
  expect((await reset(token)).status).toBe(200)
  expect(await app.db.one(sql`select hash_foreign from account where id = ${ada.id}::uuid`)).toEqual({
    hash_foreign: false,
  })
})

it('of twenty redemptions of one link on two nodes one succeeds, with one audit row', async () => {
  await using other = await testService({
    ...{ database_url: test.databaseUrl, trusted_proxies: ['127.0.0.1'], deliver },
  })
  const token = await revealedToken()
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, i) => reset(token, fresh, i % 2 ? test : other)),
  )
  expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(404)])
  const rows = await rowsOf('password_reset')
  expect(rows.filter(({ outcome }) => outcome === 'success')).toHaveLength(1)
})

it('a link that was shown to an admin proves no address', async () => {
  expect((await reset(await revealedToken())).status).toBe(200)
  expect(await operations.findAccount({ ref: ada.id })).toMatchObject({
    account: { email_verified: false },
  })
})

it('clears the failed logins of the account', async () => {
  const token = await mailedToken()
  for (let i = 0; i < 11; i++) await login('a wrong password')
  expect((await login(ada.password)).status).toBe(429)
  await reset(token)
  expect((await login(fresh)).status).toBe(200)
})

it('a password that is not accepted leaves the link open', async () => {
  const token = await mailedToken()
  expect(await reset(token, 'too short')).toMatchObject({
    status: 400,
    json: { error: 'invalid_request_body' },
  })
  expect((await reset(token)).status).toBe(200)
})

describe('a token that does not work', () => {
  const cases: [string, () => Promise<string>][] = [
    ['cut', async () => (await revealedToken()).slice(0, -1)],
    ['invented', async () => `secret_svc_ticket_${'A'.repeat(43)}`],
    ['of no form', async () => ''],
    [
      'used',
      async () => {
        const token = await revealedToken()
        await reset(token)
        return token
      },
    ],
    [
      'voided',
      async () => {
        const token = await revealedToken()
        const { tickets } = await operations.listTickets()
        await operations.revokeTicket({ ticket_id: tickets[0]?.id as string }, operator)
        return token
      },
    ],
    [
      'expired a millisecond ago',
      async () => {
        const token = await revealedToken()
        await app.db.run(sql`update account_ticket set expires_at = date_trunc('milliseconds', now())`)
        return token
      },
    ],
    [
      'of another purpose',
      async () => {
        const token = await revealedToken()
        await app.db.run(sql`update account_ticket set purpose = 'email_verify'`)
        return token
      },
    ],
    [
      'of a deleted account',
      async () => {
        const token = await revealedToken()
        await operations.deleteAccount({ account_id: ada.id }, operator)
        return token
      },
    ],
    [
      'of an account that was deleted and is back',
      async () => {
        const token = await revealedToken()
        await operations.deleteAccount({ account_id: ada.id }, operator)
        await operations.undeleteAccount({ account_id: ada.id }, operator)
        return token
      },
    ],
    [
      'of an address that the account no longer has',
      async () => {
        const token = await mailedToken()
        await operations.setEmail({ account_id: ada.id, email: 'new@x.io' }, operator)
        return token
      },
    ],
    [
      'of before a password change',
      async () => {
        const token = await revealedToken()
        await operations.setPassword({ account_id: ada.id, password: 'another long one' }, operator)
        return token
      },
    ],
  ]

  it.each(cases)('%s: is answered like every other', async (_, make) => {
    const token = await make()
    const nothing = await reset('x')
    expect(nothing).toMatchObject({ status: 404, json: { error: 'ticket_not_found' } })
    expect((await reset(token)).bare).toBe(nothing.bare)
  })

  it('is answered alike when asked what it is for, except one of another purpose', async () => {
    for (const [name, make] of cases) {
      if (name === 'of another purpose') continue
      await test.reset()
      sent = []
      ada = await test.account({ username: 'ada', email: 'ada@x.io' })
      const token = await make()
      const replies = [await ask('POST /ticket', { token }), await ask('POST /ticket', { token: 'x' })]
      expect([name, replies[0]?.bare]).toEqual([name, replies[1]?.bare])
    }
  })

  it('is charged to the address of the client', async () => {
    const ip = freshIp()
    for (let i = 0; i < 10; i++)
      expect((await ask('POST /ticket', { token: 'x' }, test, ip)).status).toBe(404)
    const token = await revealedToken()
    for (const route of ['POST /ticket', 'POST /reset'])
      expect(
        (await ask(route, { token, ...(route.endsWith('reset') && { password: fresh }) }, test, ip)).status,
      ).toBe(429)
    expect((await ask('POST /ticket', { token })).status).toBe(200)
  })

  it('takes as long as the floor says', async () => {
    await using slow = await testService({
      database_url: test.databaseUrl,
      login_fail_floor_ms: 300,
      deliver,
    })
    for (const route of ['POST /ticket', 'POST /reset']) {
      const begun = performance.now()
      const body = { token: 'x', ...(route.endsWith('reset') && { password: fresh }) }
      expect((await send(slow, route, { body })).status).toBe(404)
      expect(performance.now() - begun).toBeGreaterThan(295)
    }
  })
})

it('asking what a link is for uses nothing up, and neither does a scanner', async () => {
  const token = await mailedToken()
  for (const method of ['GET', 'HEAD'])
    expect((await fetch(`${test.url}/admin/link#ticket=${token}`, { method })).status).toBeLessThan(500)
  expect((await ask('POST /ticket', { token })).json).toEqual({
    ...{ purpose: 'password_reset', username: 'ada', email: null, expires_at: expect.any(String) },
  })
  expect((await reset(token)).status).toBe(200)
})

describe('links that an admin makes', () => {
  const make = (account_id: string, reveal?: boolean) =>
    admin.client.admin_account_reset_link_create({ account_id, ...(reveal !== undefined && { reveal }) })

  it('are mailed, or revealed once', async () => {
    const mailed = await make(ada.id)
    expect(mailed).toMatchObject({
      link: null,
      ticket: { delivery: 'mailed', account_id: ada.id, created_by: admin.actor_id },
    })
    await settled(test)
    expect((await reset(tokenOf((sent[0] as { link: string }).link))).status).toBe(200)
    const { link } = await make(ada.id, true)
    expect((await reset(tokenOf(link as string))).status).toBe(200)
    const { ticket } = await make(ada.id, true)
    expect(Date.parse(ticket.expires_at) - Date.parse(ticket.created_at)).toBe(86_400_000)
  })

  it('cannot be mailed to nobody', async () => {
    const nobody = await test.account()
    const odd = await test.account({ email: 'a,b@x.io' })
    for (const { id } of [nobody, odd])
      await expect(make(id)).rejects.toMatchObject({ reason: 'no_recipient' })
    await using off = await testService({ database_url: test.databaseUrl })
    await expect(
      off.client(admin.cookie).admin_account_reset_link_create({ account_id: ada.id }),
    ).rejects.toMatchObject({ reason: 'no_recipient' })
    const send = operations.createResetLink({ account_id: nobody.id, send: true }, operator)
    await expect(send).rejects.toMatchObject({ data: { reason: 'no_recipient' } })
    const metadata = { reason: 'no_recipient' }
    expect(await rowsOf('ticket_create')).toMatchObject([
      ...[nobody.id, odd.id, ada.id].map((target_account_id) => ({
        ...{ outcome: 'failure', target_account_id, metadata },
      })),
      { outcome: 'failure', target_account_id: nobody.id, metadata: { ...metadata, ...operator } },
    ])
  })

  it('are not made for those who hold admin or keeper everywhere', async () => {
    const holder = async (grant: object) => {
      const { id, actor_id } = await test.account()
      await test.roleGrant({ actor_id, role: 'admin', ...grant })
      return { id, actor_id }
    }
    const [other, keeper] = [await holder({}), await holder({ role: 'keeper' })]
    const removed = await holder({})
    await test.actor(removed.id, 'second')
    await app.db.run(sql`update actor set deleted_at = now() where id = ${removed.actor_id}::uuid`)
    for (const { id } of [other, keeper, removed])
      for (const reveal of [true, false])
        await expect(make(id, reveal)).rejects.toMatchObject({ reason: 'privileged_target' })
    const expired = await holder({ expires_at: '2020-01-01T00:00:00Z' })
    const scoped = await holder({})
    await app.db.run(sql`
      update role_grant set scope_kind = 'place', scope_id = gen_random_uuid()
      where actor_id = ${scoped.actor_id}::uuid`)
    for (const { id } of [expired, scoped]) expect((await make(id, true)).link).toBeTruthy()
    await operations.deleteAccount({ account_id: scoped.id }, operator)
    await expect(make(scoped.id)).rejects.toMatchObject({ reason: 'account_not_found' })
    const unknown = '00000000-0000-4000-8000-000000000000'
    await expect(make(unknown)).rejects.toMatchObject({ reason: 'account_not_found' })
    expect((await rowsOf('ticket_create')).at(-1)).toMatchObject({
      ...{ outcome: 'failure', target_account_id: null },
      metadata: { reason: 'account_not_found', attempted_account_id: unknown },
    })
  })

  it('are made by admins only, and listed without token and address', async () => {
    await expect(ada.client.admin_account_reset_link_create({ account_id: admin.id })).rejects.toMatchObject({
      reason: 'insufficient_permissions',
    })
    await make(ada.id)
    const { tickets } = await admin.client.admin_ticket_list({
      account_id: ada.id,
      purpose: 'password_reset',
      open_only: true,
    })
    expect(tickets).toEqual([
      {
        ...{ id: expect.any(String), purpose: 'password_reset', account_id: ada.id, invite_id: null },
        ...{ delivery: 'mailed', created_at: expect.any(String), created_by: admin.actor_id },
        ...{ expires_at: expect.any(String), used_at: null, voided_at: null },
      },
    ])
    const ticket_id = tickets[0]?.id as string
    expect(await admin.client.admin_ticket_revoke({ ticket_id })).toEqual({ ok: true, revoked: true })
    expect(await admin.client.admin_ticket_revoke({ ticket_id })).toEqual({ ok: true, revoked: false })
    expect((await admin.client.admin_ticket_list({ open_only: true })).tickets).toEqual([])
  })
})

it('securing an account ends every way in, and makes a link', async () => {
  const token = await mailedToken()
  await app.db.run(sql`
    with a as (insert into account_totp (account_id, secret_sealed, confirmed_at) values (${ada.id}::uuid, 'x', now()))
    , b as (insert into account_recovery_code (account_id, code_hash) values (${ada.id}::uuid, 'x'))
    , c as (insert into account_link (account_id, provider, issuer, subject) values (${ada.id}::uuid, 'p', 'i', 's'))
    , d as (insert into sign_in_flow (id, kind, account_id, expires_at) values ('x', 'k', ${ada.id}::uuid, now()))
    select`)
  const { link, sessions_revoked } = await operations.secureAccount({ account_id: ada.id }, operator)
  expect(sessions_revoked).toBe(1)
  for (const table of [
    'account_totp',
    'account_recovery_code',
    'account_link',
    'sign_in_flow',
    'auth_session',
  ])
    expect([
      table,
      await app.db.rows(sql`select from ${sql.raw(table)} where account_id = ${ada.id}::uuid`),
    ]).toEqual([table, []])
  expect((await login(ada.password)).status).toBe(401)
  expect((await reset(token)).status).toBe(404)
  expect((await reset(tokenOf(link as string))).status).toBe(200)
  expect((await login(fresh)).status).toBe(200)
  expect(await rowsOf('account_secure')).toMatchObject([{ outcome: 'success', target_account_id: ada.id }])
})
