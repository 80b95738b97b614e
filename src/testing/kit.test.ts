import { afterAll, beforeAll, expect, test as it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { rival } from '../../test/helpers/race.ts'
import { openSocket } from '../../test/helpers/sockets.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/sql.ts'
import type { Actions } from '../index.ts'
import { scenario, type TestService, testService } from './index.ts'

/** What the test kit offers to applications besides accounts and scenarios. */

const actions = {
  break_down: mutation({
    doc: 'Fails as a handler with a bug does.',
    auth: { account: 'required', actor: 'required' },
    event: 'cell_update',
    output: z.unknown(),
    async handler() {
      throw new Error('the page has no title', { cause: new Error('it was never set') })
    },
  }),
}

let test: TestService<Actions & typeof actions>
beforeAll(async () => {
  test = await testService({ actions, limit_login_ip: '3/900', app_settings: true })
})
afterAll(() => test.close())

it('messages holds what was delivered, until a reset', async () => {
  await using mailed = await testService({ deliver: () => {} })
  await mailed.service.operations.sendTestMessage({ to: 'ada@example.org' })
  expect(mailed.messages).toMatchObject([{ purpose: 'test', to: 'ada@example.org' }])
  await mailed.reset()
  expect(mailed.messages).toEqual([])
})

it('signIn signs an existing account in, again and again', async () => {
  const { id } = await test.account()
  const [one, two] = [await test.signIn(id), await test.signIn(id)]
  expect((await one.client.account_verify()).id).toBe(id)
  expect((await two.client.account_verify()).id).toBe(id)
  await test.client(one.cookie).account.logout()
  expect(await reasonOf(one.client.account_verify())).toBe('authentication_required')
  expect((await two.client.account_verify()).id).toBe(id)
  expect(two.session_id).not.toBe(one.session_id)
})

it('signIn waits for a sign-in of the same account, so that the cap of sessions holds', async () => {
  const { id } = await test.account()
  for (let n = 1; n < 4; n++) await test.signIn(id)
  const other = await rival(test.databaseUrl)
  onTestFinished(other.close)
  await other.begin('select from account where id = $1 for no key update', [id])
  await other.query(
    `insert into auth_session (id, account_id, created_at, expires_at)
    values (repeat('a', 64), $1, now(), now() + interval '1 day')`,
    [id],
  )
  const signIn = test.signIn(id)
  await Promise.race([signIn, other.blocks(1)])
  await other.commit()
  await signIn
  const live = await test.service.app.db.rows(sql`select from auth_session where account_id = ${id}::uuid`)
  expect(live).toHaveLength(5)
})

it('shows what a handler threw, with its stack and cause, in the output of the test', async () => {
  const shown = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => shown.mockRestore())
  const { client } = await test.account()
  expect(await reasonOf(client.break_down())).toBe('internal_error')
  expect(shown).toHaveBeenCalledWith(
    'cellkeep: a request failed unexpectedly',
    expect.objectContaining({
      message: 'the page has no title',
      stack: expect.stringContaining('kit.test.ts'),
      cause: expect.objectContaining({ message: 'it was never set' }),
    }),
  )
  shown.mockClear()
  expect(await reasonOf(client.cell_get({ id: crypto.randomUUID() }))).toBe('cell_not_found')
  expect(shown).not.toHaveBeenCalled()
})

it('reset leaves the service as new: no rows, no sockets, no charges, settings as they were', async () => {
  const { db } = test.service.app
  await db.run(sql`create table public.loan (account_id uuid references account)`)
  await db.run(sql`create table public.shelf (n int)`)
  await db.run(sql`insert into public.shelf values (1)`)
  for (let round = 0; round < 2; round++) {
    const root = await test.account({ username: 'root', roles: ['keeper', 'admin'] })
    await db.run(sql`insert into public.loan values (${root.id}::uuid)`)
    await root.client.app_settings_update({ open_signup: true })
    await root.client.cell_create({ data: {}, path: 'home', visibility: 'public' })
    for (let tries = 0; tries < 3; tries++)
      expect(await reasonOf(test.client().account.login({ username: 'nobody', password: 'x' }))).toBe(
        'invalid_credentials',
      )
    expect(await reasonOf(test.client().account.login({ username: 'nobody', password: 'x' }))).toBe(
      'rate_limit_exceeded',
    )
    const socket = await openSocket(test.url, { cookie: root.cookie })
    await test.reset()
    await socket.closed
    expect(await reasonOf(root.client.account_verify())).toBe('authentication_required')
    expect((await test.client().cell_list({})).cells).toEqual([])
    const { rows } = await db.one<{ rows: Record<string, number> }>(sql`
      select json_build_object('accounts', (select count(*) from account), 'events', (select count(*) from audit_entries()),
        'loans', (select count(*) from public.loan), 'shelves', (select count(*) from public.shelf), 'open', (select open_signup::int from app_settings)) as rows`)
    expect(rows).toEqual({ accounts: 0, events: 0, loans: 0, shelves: 1, open: 0 })
  }
  const ada = await test.account()
  expect(await reasonOf(test.client().account.login({ username: 'nobody', password: 'x' }))).toBe(
    'invalid_credentials',
  )
  await scenario(test, () => ada.client.cell_create({ data: {} }), { audit: [{ event_type: 'cell_create' }] })
  const admin = await test.account({ roles: ['admin'] })
  const events = await admin.client.audit_log_list({ event_type: 'cell_create' })
  expect(events.events).toHaveLength(1)
})
