import { registerHooks } from 'node:module'
import { networkInterfaces } from 'node:os'
import { afterEach, expect, it, vi } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { type MailServer, mailServer } from '../../test/helpers/mail-server.ts'
import { makeDue, settled, tokenOf } from '../../test/helpers/outbox.ts'
import { type TestOptions, type TestService, testService } from '../testing/index.ts'

const cleanUp: (() => Promise<void>)[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  for (const step of cleanUp.splice(0).reverse()) await step()
})

async function server(options?: Parameters<typeof mailServer>[0], host?: string): Promise<MailServer> {
  const made = await mailServer(options, host)
  cleanUp.push(made.close)
  return made
}

async function serviceOn(smtp_url: string, options: TestOptions = {}): Promise<TestService> {
  const test = await testService({ smtp_url, mail_from: 'Accounts <accounts@app.example>', ...options })
  cleanUp.push(test.close)
  return test
}

/** Asks to recover the password of an account with this address, and waits for what becomes of the message. */
async function recover(test: TestService, email = 'ada@x.io') {
  const account = await test.account({ email })
  expect((await send(test, 'POST /recover', { body: { identifier: account.username } })).json).toEqual({
    ok: true,
  })
  const [row, ...more] = await settled(test)
  expect(more).toEqual([])
  return { account, row }
}

const failWith = (responseCode: number) => Object.assign(new Error('a text of the server'), { responseCode })

it('sends a message with its link, and forgets both', async () => {
  const mail = await server()
  const test = await serviceOn(mail.url, { site_name: 'Töpferei' })
  const { account, row } = await recover(test)
  expect(row).toMatchObject({ state: 'sent', attempts: 1, to_address: null, link_sealed: null, error: null })
  const [{ from, to, raw, text, link = '' } = expect.unreachable(), ...more] = mail.received
  expect([from, to, more]).toEqual(['accounts@app.example', ['ada@x.io'], []])
  expect(raw).toContain(`Message-ID: <${row?.id}@app.example>`)
  expect(/^Subject: .*/m.exec(raw)?.[0]).not.toContain(account.username)
  expect(text).toContain(`Hello ${account.username}`)
  expect(text).toContain('Töpferei')
  const { json } = await send(test, 'POST /ticket', { body: { token: tokenOf(link) } })
  expect(json).toMatchObject({ purpose: 'password_reset', username: account.username, email: null })
})

it('a sender of an international domain: every header is ASCII', async () => {
  const mail = await server()
  const test = await serviceOn(mail.url, { mail_from: 'Töpferei <accounts@münchen.example>' })
  const { row } = await recover(test)
  const [head = ''] = mail.received[0]?.raw.split('\r\n\r\n') ?? []
  expect(head).toContain(`Message-ID: <${row?.id}@xn--mnchen-3ya.example>`)
  expect(head).toMatch(/^[\r\n -~]+$/)
})

it('a server that is down: the message waits, and goes out when it is back', async () => {
  const mail = await server()
  await mail.close()
  const test = await serviceOn(mail.url)
  const { row } = await recover(test)
  expect(row).toMatchObject({ state: 'queued', error: 'unreachable', attempts: 1 })
  expect(row?.pause).toBeGreaterThan(5)
  expect(row?.pause).toBeLessThanOrEqual(10)
  const back = await server()
  const other = await serviceOn(back.url, { database_url: test.databaseUrl })
  await makeDue(other)
  await expect.poll(() => back.received.length).toBe(1)
  expect(await settled(other)).toMatchObject([{ state: 'sent', attempts: 2 }])
})

it('a slow server is given up after the limit', async () => {
  const mail = await server({ onData: (stream) => stream.resume() })
  const test = await serviceOn(mail.url)
  const timeout = AbortSignal.timeout
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => timeout(ms === 30_000 ? 200 : ms))
  const { row } = await recover(test)
  expect(row).toMatchObject({ state: 'queued', error: 'timeout' })
})

it('a server that closes in the middle of the data: tried again', async () => {
  const mail: MailServer = await server({ onData: (stream) => void stream.once('data', () => mail.cut()) })
  const test = await serviceOn(mail.url)
  const { row } = await recover(test)
  expect(row).toMatchObject({ state: 'queued', error: 'unreachable' })
})

it('450 is tried again, with the same id', async () => {
  let refusals = 1
  const mail = await server({
    onRcptTo: (_address, _session, done) => (refusals-- > 0 ? done(failWith(450)) : done()),
  })
  const test = await serviceOn(mail.url)
  const { row } = await recover(test)
  expect(row).toMatchObject({ state: 'queued', error: 'unreachable', attempts: 1 })
  await makeDue(test)
  await expect.poll(() => mail.received.length).toBe(1)
  expect(mail.received[0]?.raw).toContain(row?.id)
  expect(await settled(test)).toMatchObject([{ state: 'sent', attempts: 2, error: null }])
})

it('550 is for good, and its text is kept nowhere', async () => {
  const mail = await server({ onRcptTo: (_address, _session, done) => done(failWith(550)) })
  const test = await serviceOn(mail.url)
  const { row } = await recover(test)
  expect(row).toMatchObject({ state: 'failed', error: 'refused', to_address: null, link_sealed: null })
})

it('a wrong password of the mail server does not lose the message', async () => {
  const mail = await server({
    authOptional: false,
    allowInsecureAuth: true,
    onAuth: (_auth, _session, done) => done(new Error('no')),
  })
  const test = await serviceOn(mail.url.replace('//', '//user:pass@'))
  expect((await recover(test)).row).toMatchObject({ state: 'queued', error: 'unreachable' })
})

it('a mail server that wants a password, but offers no way to give it, does not lose the message', async () => {
  const mail = await server({
    disabledCommands: ['STARTTLS', 'AUTH'],
    onMailFrom: (_address, _session, done) => done(failWith(530)),
  })
  const test = await serviceOn(mail.url.replace('//', '//user:pass@'))
  expect((await recover(test)).row).toMatchObject({ state: 'queued', error: 'unreachable' })
})

it('a certificate that nobody signed: not sent', async () => {
  const mail = await server({ secure: true })
  const test = await serviceOn(mail.url.replace('smtp:', 'smtps:'))
  expect((await recover(test)).row).toMatchObject({ state: 'queued', error: 'unreachable' })
  expect(mail.received).toEqual([])
})

const foreign = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address

it.skipIf(!foreign)('without STARTTLS nothing is sent to another machine', async () => {
  const mail = await server({}, foreign)
  const test = await serviceOn(mail.url)
  expect((await recover(test)).row).toMatchObject({ state: 'queued', error: 'unreachable' })
  expect(mail.received).toEqual([])
})

it.each([
  'a,b@c.de',
  'foo<x@y.zz>',
  '"ab"@c.de',
  'x(y)@c.de',
  'a:b@c.de',
  'a;b@c.de',
  '<a@c.de',
  'a\\b@c.de',
  `${'l'.repeat(65)}@c.de`,
  'victim@ｅxample.io',
  'victim@oﬃce.example',
  'victim@exam\u034fple.io',
  'victim@example.io\ufe0f',
  'victim@127.1',
])('%s reaches no mailbox', async (email) => {
  const mail = await server()
  const test = await serviceOn(mail.url)
  expect((await recover(test, email)).row).toMatchObject({
    state: 'failed',
    error: 'undeliverable',
    to_address: null,
  })
  expect(mail.received).toEqual([])
})

it.each([
  'jörg@münchen.example',
  'jörg@MU\u0308NCHEN.Example',
  'a@xn--mnchen-3ya.example',
  'a@ΣΑΣ.example',
  'a@straße.example',
  'a@हिन्दी.example',
  `a@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.${'e'.repeat(60)}.example`,
])('%s reaches its own mailbox', async (email) => {
  const mail = await server()
  const test = await serviceOn(mail.url)
  const { row } = await recover(test, email)
  expect(row?.error).toBeNull()
  const [to = ''] = mail.received[0]?.to ?? []
  expect(new URL(`http://${to.split('@')[1]}`).hostname).toBe(
    new URL(`http://${email.split('@')[1]}`).hostname,
  )
  expect(to.split('@')[0]).toBe(email.split('@')[0])
})

it('the start fails if the package is missing, and names it', async () => {
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      if (specifier.includes('nodemailer')) throw new Error('not found')
      return next(specifier, context)
    },
  })
  try {
    await expect(serviceOn('smtp://127.0.0.1:25')).rejects.toMatchObject({
      exitCode: 78,
      message: expect.stringContaining('nodemailer'),
    })
  } finally {
    hooks.deregister()
  }
})
