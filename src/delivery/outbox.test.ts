import { readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { beforeEach, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { makeDue, outbox, settled, tokenOf } from '../../test/helpers/outbox.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { writeBackup } from '../backup/backup.ts'
import { operate } from '../core/operate.ts'
import { sql } from '../db/db.ts'
import { DeliveryRefused, type Message } from '../registry/messages.ts'
import { type TestAccount, testService } from '../testing/index.ts'
import { notify } from './notify.ts'

let sent: Message[] = []
/** What the hook does with a message besides keeping it. */
let deliver: (message: Message) => Promise<unknown> | unknown = () => {}
const { log, text } = capturedLog()
const options = {
  log,
  limit_recover_ip: null,
  limit_recover_identifier: null,
  deliver: (message: Message) => {
    sent.push(message)
    return deliver(message)
  },
}
const test = await serviceForFile(options)
const { app, operations } = test.service
const operator = { via: 'testing' }
let ada: TestAccount
let admin: TestAccount
beforeEach(async () => {
  await test.reset()
  sent = []
  deliver = () => {}
  ada = await test.account({ username: 'ada', email: 'ada@x.io' })
  admin = await test.account({ roles: ['admin'] })
})

const recover = (identifier = 'ada') => send(test, 'POST /recover', { body: { identifier } })
const linkOf = (message: Message | undefined): string => (message as { link: string }).link
const ticketOf = (message: Message | undefined) =>
  send(test, 'POST /ticket', { body: { token: tokenOf(linkOf(message)) } })

it('the hook gets the message with everything in it', async () => {
  await send(test, 'POST /recover', { body: { identifier: 'ADA@x.io', locale: 'de-AT' } })
  const [row] = await settled(test)
  expect(sent).toEqual([
    {
      ...{ id: row?.id, to: 'ada@x.io', locale: 'de-AT', purpose: 'password_reset', username: 'ada' },
      link: expect.stringMatching(/^http:\/\/localhost\/admin\/link#ticket=secret_svc_ticket_[\w-]{43}$/),
      expires_at: expect.stringMatching(/^\d{4}-.*Z$/),
    },
  ])
})

it('a hook that throws is called again with the same message; one that refuses is not', async () => {
  deliver = () => {
    throw new Error('to ada@x.io: not now')
  }
  await recover()
  expect(await settled(test)).toMatchObject([{ state: 'queued', error: 'hook_failed', attempts: 1 }])
  deliver = () => {
    throw new DeliveryRefused('never')
  }
  await makeDue(test)
  await expect.poll(() => sent.length).toBe(2)
  expect(await settled(test)).toMatchObject([
    { state: 'failed', error: 'refused', attempts: 2, to_address: null, link_sealed: null },
  ])
  expect(linkOf(sent[1])).toBe(linkOf(sent[0]))
})

it.each([
  ['nothing', undefined],
  ['null', null],
  ['a text', 'down'],
  ['an error whose stack is none', Object.assign(new Error('down'), { stack: 5 })],
  ['an object without a prototype', Object.create(null)],
])('a hook that throws %s is called again like any other', async (_what, thrown) => {
  deliver = () => Promise.reject(thrown)
  await recover()
  expect(await settled(test)).toMatchObject([{ state: 'queued', error: 'hook_failed', attempts: 1 }])
})

it('the pauses between tries grow to an hour, and end with the link', async () => {
  deliver = () => {
    throw new Error('no')
  }
  await recover()
  const pauses: (number | null)[] = []
  for (;;) {
    const [row] = await settled(test)
    if (row?.state !== 'queued') {
      expect(row).toMatchObject({ state: 'failed', error: 'hook_failed', link_sealed: null })
      break
    }
    pauses.push(Math.round((row.pause ?? 0) / 10) * 10)
    await makeDue(test)
    await expect.poll(() => sent.length).toBe(row.attempts + 1)
  }
  expect(pauses).toEqual([10, 60, 300, 900])
})

it('nobody waits for a hook that takes its time', async () => {
  const gate = Promise.withResolvers<void>()
  deliver = () => gate.promise
  await recover()
  await expect.poll(() => sent.length).toBe(1)
  expect((await recover()).json).toEqual({ ok: true })
  expect(await outbox(test)).toMatchObject([{ state: 'queued' }, { state: 'queued' }])
  gate.resolve()
  expect(await settled(test)).toMatchObject([{ state: 'sent' }, { state: 'sent' }])
})

it('what was delivered but not recorded is delivered again, with the same id and link', async () => {
  await recover()
  const [row] = await settled(test)
  const { link } = sent[0] as { link: string }
  // As left by a process that dies between the two: still queued, its lease over.
  await app.db.run(sql`
    update message_outbox set state = 'queued', finished_at = null, to_address = 'ada@x.io', next_attempt_at = now(),
      leased_until = now() - interval '1 second',
      link_sealed = ${app.sealing?.seal(link, { table: 'message_outbox', row: row?.id ?? '', owner: await ticketId() })}`)
  app.outbox.wake()
  await expect.poll(() => sent.length).toBe(2)
  expect(sent[1]).toEqual(sent[0])
  expect((await ticketOf(sent[1])).status).toBe(200)
})

const ticketId = async (): Promise<string> =>
  (await app.db.one<{ id: string }>(sql`select id from account_ticket`)).id

it('two nodes deliver 200 messages once each', async () => {
  await using other = await testService({ ...options, database_url: test.databaseUrl })
  await operations.verifyEmail({ account_id: ada.id }, operator)
  await app.db.run(sql`
    insert into message_outbox (purpose, notice, account_id, to_address, locale, expires_at)
    select 'notice', 'password_changed', ${ada.id}::uuid, 'u' || i || '@x.io', 'en', now() + interval '1 day'
    from generate_series(1, 200) i`)
  deliver = () => new Promise((resolve) => setImmediate(resolve))
  for (const one of [test, other]) one.service.app.outbox.wake()
  await expect.poll(() => sent.length).toBe(200)
  const rows = await settled(test)
  expect(rows.every(({ state, attempts }) => state === 'sent' && attempts === 1)).toBe(true)
  expect(new Set(sent.map(({ id }) => id)).size).toBe(200)
})

it('a link that was voided while its message waited is not sent', async () => {
  deliver = () => {
    throw new Error('no')
  }
  await recover()
  await settled(test)
  await admin.client.admin_ticket_revoke({ ticket_id: await ticketId() })
  deliver = () => {}
  await makeDue(test)
  await expect.poll(async () => (await outbox(test))[0]?.state).toBe('failed')
  expect(await outbox(test)).toMatchObject([{ error: 'expired', to_address: null, link_sealed: null }])
  expect(sent).toHaveLength(1)
})

it('the sixth link to one address in an hour is not sent, and the answer is the same', async () => {
  const replies = []
  for (let i = 0; i < 6; i++) {
    replies.push((await recover()).bare)
    await settled(test)
  }
  expect(new Set(replies).size).toBe(1)
  expect((await outbox(test)).map(({ state }) => state)).toEqual([...Array(5).fill('sent'), 'suppressed'])
  expect(sent).toHaveLength(5)
})

it('links that others have sent to an address do not use up those that reset its password', async () => {
  const mallory = await test.account()
  for (let i = 0; i < 5; i++) {
    await mallory.client.account_email_change({ email: 'ada@x.io' })
    await settled(test)
  }
  await recover()
  const rows = await settled(test)
  expect(rows.map(({ purpose, state }) => [purpose, state])).toEqual([
    ...Array(5).fill(['email_change', 'sent']),
    ['password_reset', 'sent'],
  ])
  await test
    .account({ username: 'eve' })
    .then(({ client }) => client.account_email_change({ email: 'ada@x.io' }))
  expect((await settled(test)).at(-1)).toMatchObject({ purpose: 'email_change', state: 'suppressed' })
})

it('both forms of a domain have one budget', async () => {
  await test.account({ username: 'unicode', email: 'a@münchen.example' })
  await test.account({ username: 'ascii', email: 'a@xn--mnchen-3ya.example' })
  for (const name of ['unicode', 'ascii', 'unicode', 'ascii', 'unicode', 'ascii']) {
    await recover(name)
    await settled(test)
  }
  expect((await outbox(test)).map(({ state }) => state)).toEqual([...Array(5).fill('sent'), 'suppressed'])
})

it('each message to an address counts once, whatever it takes to deliver it', async () => {
  await app.db.run(sql`update account set email_verified = true where id = ${ada.id}::uuid`)
  for (let i = 0; i < 21; i++)
    await operate(app, 'account_update', operator, (work) => notify(app, work, ada.id, 'password_changed'))
  const rows = await settled(test)
  expect(rows.map(({ state }) => state).filter((state) => state === 'suppressed')).toHaveLength(1)
  expect(rows.find(({ state }) => state === 'suppressed')).toMatchObject({
    error: 'limited',
    to_address: null,
  })
  expect(sent).toHaveLength(20)
})

it('a message that no key opens fails, and is logged', async () => {
  deliver = () => {
    throw new Error('no')
  }
  await recover()
  await settled(test)
  await using other = await testService({
    ...options,
    database_url: test.databaseUrl,
    secret_keys: ['another-secret-another-secret-another'],
  })
  const wake = app.outbox.wake
  ;(app.outbox as { wake(): void }).wake = () => {}
  await makeDue(other)
  await expect.poll(async () => (await outbox(test))[0]?.state).toBe('failed')
  ;(app.outbox as { wake(): void }).wake = wake
  expect(await outbox(test)).toMatchObject([{ error: 'unsealable', link_sealed: null }])
  expect(text()).toContain('no secret key decrypts')
})

it('lists, logs, audit rows and a dump tell neither address nor link', async () => {
  await recover()
  await settled(test)
  const list = JSON.stringify([
    await admin.client.admin_message_list({}),
    await admin.client.admin_ticket_list({}),
    await operations.listMessages(),
    await operations.listTickets(),
  ])
  expect(list).toContain('password_reset')
  const rows = JSON.stringify(await app.db.rows(sql`select metadata from audit_entries()`))
  const file = join(tmpdir(), `ck-backup-${process.pid}-${Date.now()}`)
  await writeBackup({ connectionString: test.databaseUrl }, { to: file, version: 'test' })
  const dump = gunzipSync(await readFile(file)).toString()
  await rm(file)
  const secret = tokenOf(linkOf(sent[0]))
  for (const where of [list, rows, text(), dump]) expect(where).not.toContain(secret)
  for (const where of [list, rows, text()]) expect(where).not.toContain('ada@x.io')
  // The account and the ticket of its link have the address, but the message no longer has it.
  const rowsWith = dump.split('\n').filter((line) => line.includes('ada@x.io'))
  expect(rowsWith.map((line) => Object.hasOwn(JSON.parse(line), 'to_address'))).toEqual([false, false])
})

it('the list is filtered by state and goes on by its cursor', async () => {
  for (let i = 0; i < 3; i++) await recover()
  await settled(test)
  const page = await admin.client.admin_message_list({ limit: 2 })
  const rest = await admin.client.admin_message_list({ limit: 2, cursor: page.next_cursor })
  expect([...page.messages, ...rest.messages]).toHaveLength(3)
  expect(page.messages[0]).toEqual({
    ...{
      id: expect.any(String),
      purpose: 'password_reset',
      notice: null,
      account_id: ada.id,
      invite_id: null,
    },
    ...{ state: 'sent', attempts: 1, error: null, next_attempt_at: null },
    ...{ created_at: expect.any(String), finished_at: expect.any(String) },
  })
  expect((await admin.client.admin_message_list({ state: 'failed' })).messages).toEqual([])
  await expect(ada.client.admin_message_list({})).rejects.toMatchObject({
    reason: 'insufficient_permissions',
  })
})

it('the database refuses a message that is done with and has an address', async () => {
  await recover()
  await settled(test)
  await expect(app.db.run(sql`update message_outbox set to_address = 'a@x.io'`)).rejects.toThrow(
    /message_outbox_done/,
  )
  await expect(app.db.run(sql`update account_ticket set invite_id = id`)).rejects.toThrow(/account_ticket/)
})

it('links and messages are removed a while after their end', async () => {
  await recover()
  await settled(test)
  await app.db.run(sql`update message_outbox set created_at = now() - interval '8 days',
    finished_at = now() - interval '7 days'`)
  await app.db.run(sql`update account_ticket set created_at = now() - interval '31 days',
    expires_at = now() - interval '29 days'`)
  expect(await operations.cleanUp()).toMatchObject({ removed_messages: 1, removed_tickets: 0 })
  await app.db.run(sql`update account_ticket set expires_at = now() - interval '30 days'`)
  expect(await operations.cleanUp()).toMatchObject({ removed_messages: 0, removed_tickets: 1 })
})

it('a message that waits for a transport which was taken away is removed a while after it has expired', async () => {
  deliver = () => Promise.reject(new Error('the mail server is down'))
  await recover()
  const tried = () => app.db.rows(sql`select attempts from message_outbox where leased_until is null`)
  await expect.poll(tried).toEqual([{ attempts: 1 }])
  const expired = (days: number) =>
    app.db.run(sql`update message_outbox set created_at = now() - interval '9 days',
      expires_at = now() - ${days}::int * interval '1 day', next_attempt_at = now() + interval '1 day'`)
  await expired(6)
  expect(await operations.cleanUp()).toMatchObject({ removed_messages: 0 })
  await expired(7)
  expect(await operations.cleanUp()).toMatchObject({ removed_messages: 1 })
})

it.each([
  ['put off', sql`next_attempt_at = now() + interval '1 day'`],
  [
    'left by a node that was killed while it delivered it',
    sql`next_attempt_at = now(), leased_until = now() + interval '1 day'`,
  ],
])('a message %s before the clock of the database was set back is delivered', async (_what, ahead) => {
  deliver = () => {
    throw new Error('not now')
  }
  await recover()
  await settled(test)
  deliver = () => {}
  await app.db.run(sql`update message_outbox set ${ahead}`)
  await operations.cleanUp()
  app.outbox.wake()
  await expect.poll(() => outbox(test)).toMatchObject([{ state: 'sent', attempts: 2 }])
})
