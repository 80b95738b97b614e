import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { mannWhitney } from '../../bench/mann-whitney.ts'
import { freshIp, send } from '../../test/helpers/account-routes.ts'
import { settled, tokenOf } from '../../test/helpers/outbox.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import type { Message } from '../registry/messages.ts'
import { type TestAccount, testService } from '../testing/index.ts'

let sent: Message[] = []
const test = await serviceForFile({
  trusted_proxies: ['127.0.0.1'],
  public_url: 'https://app.example',
  link_url: 'https://app.example/{purpose}/link',
  deliver: (message) => void sent.push(message),
})
const { app, operations } = test.service
const operator = { via: 'testing' }
let ada: TestAccount
beforeEach(async () => {
  await test.reset()
  sent = []
  ada = await test.account({ username: 'ada', email: 'Ada@x.io' })
})

const recover = (identifier: string, ip = freshIp(), headers: Record<string, string> = {}) =>
  send(test, 'POST /recover', { body: { identifier }, ip, headers })
const verify = (account_id: string) => operations.verifyEmail({ account_id }, operator)
const setHash = (id: string) => app.db.run(sql`update account set password_hash = '*' where id = ${id}::uuid`)
const passkey = (id: string) =>
  app.db.run(sql`
    insert into account_passkey (id, account_id, public_key, counter, device, backed_up, first_factor, second_factor,
      rp_id, name) values (${id}, ${id}::uuid, '', 0, 'single', false, true, false, 'app.example', 'Passkey')`)

it.each(['ada', ' ADA ', 'ada@X.io', 'Ada@x.io'])(
  '%s gets a link, at the address of the account',
  async (identifier) => {
    expect((await recover(identifier)).json).toEqual({ ok: true })
    await settled(test)
    expect(sent).toMatchObject([{ to: 'Ada@x.io', username: 'ada', purpose: 'password_reset' }])
    const [{ link }] = sent as unknown as [{ link: string }]
    expect(link).toMatch(/^https:\/\/app\.example\/password_reset\/link#ticket=secret_svc_ticket_[\w-]{43}$/)
    const [{ id, expires_at } = expect.unreachable()] = (await operations.listTickets()).tickets
    const rows = await app.db.rows(sql`
    select event_type, outcome, actor_id, account_id, target_account_id, metadata from audit_entries()
    where event_type not in ('account_create', 'actor_create')`)
    expect(rows).toEqual([
      {
        ...{ event_type: 'ticket_create', outcome: 'success', actor_id: null, account_id: null },
        target_account_id: ada.id,
        metadata: {
          ...{
            ticket_id: id,
            purpose: 'password_reset',
            delivery: 'mailed',
            expires_at,
            credential_type: null,
          },
        },
      },
    ])
  },
)

it('every other name is answered in the same bytes, and gets nothing', async () => {
  const known = (await recover('ada')).bare
  const keeper = await test.account({ username: 'keeper', email: 'keeper@x.io', roles: ['keeper'] })
  await verify(keeper.id)
  await test.account({ username: 'admin', email: 'admin@x.io', roles: ['admin'] })
  await test.account({ username: 'mailless' })
  const gone = await test.account({ username: 'gone', email: 'gone@x.io' })
  await operations.deleteAccount({ account_id: gone.id }, operator)
  const sso = await test.account({ username: 'sso', email: 'sso@x.io' })
  await setHash(sso.id)
  await passkey(sso.id)
  await settled(test)
  const { tickets } = await operations.listTickets()
  for (const name of [
    'nobody',
    'keeper',
    'keeper@x.io',
    'admin',
    'mailless',
    'gone',
    'gone@x.io',
    'sso',
    'a,ada@x.io',
    'ada@x.io,b@x.io',
    'ada@x.io\nb@x.io',
    'ada@x.io b@x.io',
  ])
    expect([name, (await recover(name)).bare]).toEqual([name, known])
  await settled(test)
  expect(sent).toHaveLength(1)
  expect((await operations.listTickets()).tickets).toEqual(tickets)
  const rows = await app.db.rows(sql`select 1 from audit_entries() where event_type = 'ticket_create'`)
  expect(rows).toHaveLength(1)
})

it('an admin with a verified address, and an account without any way in, get their link', async () => {
  const admin = await test.account({ username: 'admin', email: 'admin@x.io', roles: ['admin'] })
  await verify(admin.id)
  const imported = await test.account({ username: 'imported', email: 'imported@x.io' })
  await setHash(imported.id)
  for (const name of ['admin', 'imported']) await recover(name)
  await settled(test)
  expect(sent.map(({ to }) => to).sort()).toEqual(['admin@x.io', 'imported@x.io'])
})

it.each(['keeper', 'admin'])(
  'an account that becomes %s while the request waits gets nothing',
  async (role) => {
    const other = await rival(test.databaseUrl)
    onTestFinished(() => other.close())
    await other.begin('select from account where id = $1 for no key update', [ada.id])
    const reply = recover('ada')
    await other.blocks(1)
    await other.query('insert into role_grant (actor_id, role) values ($1, $2)', [ada.actor_id, role])
    await other.commit()
    expect((await reply).json).toEqual({ ok: true })
    await settled(test)
    expect([sent, (await operations.listTickets()).tickets]).toEqual([[], []])
  },
)

it('an account whose provider or passkeys no longer let it in gets its link', async () => {
  const [left, moved] = [
    await test.account({ username: 'left', email: 'left@x.io' }),
    await test.account({ username: 'moved', email: 'moved@x.io' }),
  ]
  await Promise.all([setHash(left.id), setHash(moved.id), passkey(moved.id)])
  await app.db.run(sql`
    insert into account_link (account_id, provider, issuer, subject)
    values (${left.id}::uuid, 'gone', 'https://gone.example', '1')`)
  await recover('moved')
  await app.db.run(sql`update account_passkey set rp_id = 'old.example'`)
  for (const name of ['left', 'moved']) await recover(name)
  await settled(test)
  expect(sent.map(({ to }) => to).sort()).toEqual(['left@x.io', 'moved@x.io'])
})

it('no header of the request reaches the link', async () => {
  await recover('ada', freshIp(), {
    host: 'evil.example',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'http',
  })
  await settled(test)
  expect((sent[0] as { link: string }).link).toMatch(/^https:\/\/app\.example\//)
})

it('requests are counted by address and by name, whatever becomes of them', async () => {
  for (const name of ['ada', 'nobody']) {
    for (let i = 0; i < 3; i++) expect((await recover(name)).status).toBe(200)
    expect(await recover(name.toUpperCase())).toMatchObject({
      status: 429,
      json: { error: 'rate_limit_exceeded' },
    })
  }
  const ip = freshIp()
  for (let i = 0; i < 10; i++) expect((await recover(`name${i}`, ip)).status).toBe(200)
  expect((await recover('name', ip)).status).toBe(429)
})

it('whoever asks for links by a name ends none that an operator was shown', async () => {
  const { link } = await operations.createResetLink({ account_id: ada.id }, operator)
  for (const name of ['ada', 'ada', 'ada', 'ada@x.io']) await recover(name)
  const open = (await operations.listTickets({ open_only: true })).tickets
  expect(open.map(({ delivery }) => delivery)).toEqual(['mailed', 'mailed', 'mailed', 'revealed'])
  const body = { token: link?.split('#ticket=')[1], password: 'another long password' }
  expect((await send(test, 'POST /reset', { body, ip: freshIp() })).status).toBe(200)
})

it('three links work at once; the fourth ends the first', async () => {
  await recover('ada')
  await recover('ada@x.io')
  await recover('ada')
  await recover('ada@x.io')
  await settled(test)
  const replies = []
  for (const message of sent) {
    const token = tokenOf((message as { link: string }).link)
    replies.push((await send(test, 'POST /ticket', { body: { token }, ip: freshIp() })).status)
  }
  expect(replies.sort()).toEqual([200, 200, 200, ...(sent.length > 3 ? [404] : [])])
  const open = await operations.listTickets({ open_only: true })
  expect(open.tickets).toHaveLength(3)
})

it('without a transport, or switched off, there is no such route', async () => {
  for (const options of [{}, { recovery: false, deliver: () => {} }]) {
    await using off = await testService(options)
    const reply = await send(off, 'POST /recover', { body: { identifier: 'ada' } })
    expect(reply).toMatchObject({ status: 404, json: { error: 'not_found' } })
  }
})

it('the time of the answer does not tell who has an account', { timeout: 240_000 }, async () => {
  const keeper = await test.account({ username: 'keeper', email: 'keeper@x.io', roles: ['keeper'] })
  const gone = await test.account({ username: 'gone', email: 'gone@x.io' })
  await operations.deleteAccount({ account_id: gone.id }, operator)
  expect(keeper.id).not.toBe(gone.id)
  const names = ['ada', 'nobody', 'keeper', 'gone']
  /** How long the answers take, at random and ten at once. */
  const timed = async (login_fail_floor_ms: number, count: number) => {
    await using slow = await testService({
      database_url: test.databaseUrl,
      login_fail_floor_ms,
      login_fail_jitter_ms: 25,
      trusted_proxies: ['127.0.0.1'],
      limit_recover_identifier: null,
      limit_recover_ip: null,
      deliver: () => {},
    })
    const times = new Map(names.map((name) => [name, [] as number[]]))
    const rounds = [...Array(count).keys()].flatMap(() => names.map((name) => ({ name, at: Math.random() })))
    const queue = rounds.sort((a, b) => a.at - b.at)
    const worker = async (): Promise<void> => {
      for (let one = queue.pop(); one; one = queue.pop()) {
        const begun = performance.now()
        await send(slow, 'POST /recover', { body: { identifier: one.name } })
        times.get(one.name)?.push(performance.now() - begun)
      }
    }
    await Promise.all(Array.from({ length: 10 }, worker))
    return times
  }
  const measured = async (): Promise<number[]> => {
    // The floor hides the work only where it is longer than the work, which a busy machine prolongs.
    const work = Math.max(...[...(await timed(0, 25)).values()].flat())
    const times = await timed(Math.min(10_000, Math.ceil(Math.max(200, 3 * work))), 100)
    const unknown = times.get('nobody') as number[]
    return names
      .filter((name) => name !== 'nobody')
      .map((name) => mannWhitney(times.get(name) as number[], unknown).p)
  }
  // One comparison in a hundred differs by chance; a real difference does so twice.
  const told = async () => (await measured()).filter((p) => p < 0.01)
  expect((await told()).length === 0 || (await told()).length === 0).toBe(true)
})
