import { beforeEach, describe, expect, it } from 'vitest'
import { freshIp, send } from '../../test/helpers/account-routes.ts'
import { settled, tokenOf } from '../../test/helpers/outbox.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import type { Message } from '../registry/messages.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'

let sent: Message[] = []
const options = {
  trusted_proxies: ['127.0.0.1'],
  deliver: (message: Message): void => void sent.push(message),
}
/** Invites are claimed by code: that is the default with a transport. */
const test = await serviceForFile(options)
const { database_url: same } = { database_url: test.databaseUrl }
const strict = await serviceForFile({ ...options, database_url: same, invite_claim: 'verified_email' })
const plain = await serviceForFile({ trusted_proxies: ['127.0.0.1'], database_url: same })

let admin: TestAccount
beforeEach(async () => {
  await test.reset()
  for (const one of [strict, plain]) await one.reset()
  sent = []
  admin = await test.account({ username: 'admin', roles: ['admin'] })
})

const password = 'a rather long password'
const signup = (body: object, on: TestService = test) =>
  send(on, 'POST /signup', { body: { password, ...body }, ip: freshIp() })
const clientOf = (on: TestService) => on.client(admin.cookie)

async function mailed(): Promise<string> {
  await settled(test)
  return tokenOf((sent.at(-1) as { link: string }).link)
}
const account = async (username: string) => {
  const { account } = await test.service.operations.findAccount({ ref: username })
  return account
}
const openTickets = async () => (await clientOf(test).admin_ticket_list({ open_only: true })).tickets

it('an invite is mailed, and its token makes an account whose address is verified', async () => {
  const { invite, link } = await clientOf(test).invite_create({ email: 'Grace@x.io', locale: 'fr' })
  expect(link).toBeNull()
  const invite_token = await mailed()
  expect(sent).toMatchObject([{ purpose: 'invite', to: 'Grace@x.io', locale: 'fr' }])
  expect((await send(test, 'POST /ticket', { body: { token: invite_token } })).json).toMatchObject({
    ...{ purpose: 'invite', username: null, email: 'Grace@x.io' },
  })
  const made = await signup({ username: 'grace', email: 'grace@x.io', invite_token })
  expect(made.status).toBe(200)
  expect(await account('grace')).toMatchObject({ email_verified: true, created_by: admin.actor_id })
  const { invites } = await clientOf(test).invite_list({})
  expect(invites).toMatchObject([{ id: invite.id, claimed_by_username: 'grace' }])
  expect(await openTickets()).toEqual([])
})

it('the link of an invite tells the username that it asks for', async () => {
  const { link } = await clientOf(test).invite_create({ username: 'hopper' })
  const token = tokenOf(link as string)
  expect((await send(test, 'POST /ticket', { body: { token } })).json).toMatchObject({
    ...{ purpose: 'invite', username: 'hopper', email: null },
  })
})

describe('everything that does not fit is refused in the same bytes', () => {
  it('when invites are claimed by code', async () => {
    const unknown = await signup({ username: 'grace', email: 'nobody@x.io' })
    expect(unknown).toMatchObject({ status: 403, json: { error: 'no_matching_invite' } })
    await clientOf(test).invite_create({ email: 'grace@x.io' })
    const token = await mailed()
    await clientOf(test).invite_create({ email: 'other@x.io' })
    const other = await mailed()
    for (const body of [
      {},
      { invite_token: other },
      { invite_token: `${token}x` },
      { invite_token: '' },
      { invite_token: token, email: 'elsewhere@x.io' },
      { invite_token: token, email: null },
    ])
      expect((await signup({ username: 'grace', email: 'grace@x.io', ...body })).bare).toBe(unknown.bare)
    expect(await openTickets()).toHaveLength(2)
    expect((await signup({ username: 'grace', email: 'grace@x.io', invite_token: token })).status).toBe(200)
    expect((await signup({ username: 'hopper', email: 'grace@x.io', invite_token: token })).bare).toBe(
      unknown.bare,
    )
  })

  it('when only a mailed token counts', async () => {
    await clientOf(test)
      .invite_create({ email: 'grace@x.io', send: false, reveal: true })
      .then(async ({ link, invite }) => {
        const invite_token = tokenOf(link as string)
        const body = { username: 'grace', email: 'grace@x.io' }
        expect((await signup({ ...body, invite_token }, strict)).status).toBe(403)
        await clientOf(strict).invite_send({ invite_id: invite.id })
        expect((await signup({ ...body, invite_token: await mailed() }, strict)).status).toBe(200)
      })
  })

  it('an expired, deleted or claimed invite', async () => {
    const { invite } = await clientOf(test).invite_create({ email: 'a@x.io' })
    const token = await mailed()
    await clientOf(test).invite_delete({ invite_id: invite.id })
    expect((await signup({ username: 'aaa', email: 'a@x.io', invite_token: token })).status).toBe(403)
    expect((await send(test, 'POST /ticket', { body: { token } })).status).toBe(404)
    const { invite: second } = await clientOf(test).invite_create({ email: 'b@x.io' })
    const late = await mailed()
    await test.service.app.db.run(sql`update invite set expires_at = date_trunc('milliseconds', now())
      where id = ${second.id}::uuid`)
    expect((await signup({ username: 'bbb', email: 'b@x.io', invite_token: late })).status).toBe(403)
  })
})

it('who claims nothing but a name sees no difference: without a transport no token is needed', async () => {
  const made = await clientOf(plain).invite_create({ email: 'grace@x.io' })
  expect(made.link).toBeNull()
  expect((await signup({ username: 'grace', email: 'grace@x.io' }, plain)).status).toBe(200)
  expect(await account('grace')).toMatchObject({ email_verified: false })
  const { link } = await clientOf(plain).invite_create({ email: 'other@x.io', reveal: true })
  const invite_token = tokenOf(link as string)
  expect((await signup({ username: 'other', email: 'no@x.io', invite_token }, plain)).status).toBe(403)
  expect((await signup({ username: 'other', email: 'other@x.io', invite_token }, plain)).status).toBe(200)
  expect(await account('other')).toMatchObject({ email_verified: false })
})

it('by code, a link that is not mailed is revealed once', async () => {
  const noSend = await clientOf(test).invite_create({ email: 'a@x.io', send: false })
  const asked = await clientOf(test).invite_create({ email: 'b@x.io', reveal: true })
  const nameOnly = await clientOf(test).invite_create({ username: 'ccc' })
  const odd = await clientOf(test).invite_create({ email: 'a,b@x.io' })
  for (const { link } of [noSend, asked, nameOnly, odd]) expect(link).toContain('#ticket=')
  expect(await settled(test)).toEqual([])
  const body = { username: 'ccc', invite_token: tokenOf(nameOnly.link as string) }
  expect((await signup(body)).status).toBe(200)
})

it('where only mail counts, a link is not revealed, and an address to which it can be mailed is required', async () => {
  for (const [input, path, code] of [
    [{ email: 'a@x.io', reveal: true }, ['reveal'], 'invalid_value'],
    [{ username: 'aaa' }, ['email'], 'invalid_type'],
    [{ email: 'a,b@x.io' }, ['email'], 'invalid_value'],
  ] as const)
    await expect(clientOf(strict).invite_create(input)).rejects.toMatchObject({
      reason: 'invalid_params',
      data: { issues: [{ path, code }] },
    })
  const { invite } = await clientOf(strict).invite_create({ email: 'a@x.io', send: false })
  await expect(clientOf(strict).invite_send({ invite_id: invite.id, reveal: true })).rejects.toMatchObject({
    reason: 'invalid_params',
  })
})

it('older invites become claimable by sending them', async () => {
  const { invite } = await clientOf(plain).invite_create({ email: 'grace@x.io' })
  const body = { username: 'grace', email: 'grace@x.io' }
  expect((await signup(body)).status).toBe(403)
  await clientOf(test).invite_send({ invite_id: invite.id, reveal: true })
  expect(await clientOf(test).invite_send({ invite_id: invite.id })).toMatchObject({ link: null })
  expect(await openTickets()).toHaveLength(2)
  expect((await signup({ ...body, invite_token: await mailed() })).status).toBe(200)
  expect(await openTickets()).toEqual([])
  await expect(clientOf(test).invite_send({ invite_id: invite.id })).rejects.toMatchObject({
    reason: 'invite_not_found',
  })
})

it('an invite without an address is sent to nobody, but its link can be shown', async () => {
  const { invite } = await clientOf(plain).invite_create({ username: 'grace' })
  await expect(clientOf(test).invite_send({ invite_id: invite.id })).rejects.toMatchObject({
    reason: 'no_recipient',
  })
  const { link } = await clientOf(test).invite_send({ invite_id: invite.id, reveal: true })
  expect((await signup({ username: 'grace', invite_token: tokenOf(link as string) })).status).toBe(200)
})

it('a link ends with its invite at the latest, and after 14 days', async () => {
  const expires_at = new Date(Date.now() + 3_600_000).toISOString()
  await clientOf(test).invite_create({ email: 'a@x.io', expires_at })
  await clientOf(test).invite_create({ email: 'b@x.io' })
  const [late, soon] = await openTickets()
  expect(soon?.expires_at).toBe(expires_at)
  expect(Date.parse(late?.expires_at ?? '') - Date.parse(late?.created_at ?? '')).toBe(14 * 86_400_000)
})

it('while signup is open, a token claims its invite and is no open signup', async () => {
  await using open = await testService({
    ...{ ...options, database_url: same, app_settings: true, limit_signup_open_ip: '1/3600' },
  })
  await clientOf(open).app_settings_update({ open_signup: true })
  await clientOf(open).invite_create({ email: 'grace@x.io' })
  const invite_token = await mailed()
  const ip = freshIp()
  const sign = (body: object) => send(open, 'POST /signup', { body: { password, ...body }, ip })
  expect((await sign({ username: 'anyone' })).status).toBe(200)
  expect((await sign({ username: 'another' })).status).toBe(429)
  expect((await sign({ username: 'grace', email: 'grace@x.io', invite_token })).status).toBe(200)
  expect(await account('grace')).toMatchObject({ email_verified: true, created_by: admin.actor_id })
})

it('of ten signups with one token on two nodes one succeeds', async () => {
  await clientOf(test).invite_create({ email: 'grace@x.io' })
  const invite_token = await mailed()
  const replies = await Promise.all(
    Array.from({ length: 10 }, (_, i) =>
      signup({ username: `grace${i}`, email: 'grace@x.io', invite_token }, i % 2 ? test : strict),
    ),
  )
  expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(403)])
})
