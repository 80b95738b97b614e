import { afterAll, describe, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { openStream } from '../../test/helpers/audit-streams.ts'
import { tokenOf } from '../../test/helpers/callers.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { openSocket, refusedUpgrade } from '../../test/helpers/sockets.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, testService } from '../testing/index.ts'

const statements: string[] = []
const test = await serviceForFile({
  audit_stream: true,
  require_second_factor: 'admin',
  onStatement: (text) => void statements.push(text),
})
const db = test.service.app.db
const strengthen = ({ id }: TestAccount) =>
  db.run(sql`update auth_session set strong = true where account_id = ${id}::uuid`)
const refused = { error: 'second_factor_enrolment_required' }

describe('an admin without a second factor, where admins need one', async () => {
  const root = await test.account({ roles: ['admin'] })
  const { cookie } = root
  const token = await test.account().then(async (account) => {
    const made = await tokenOf(test, account)
    await test.roleGrant({ actor_id: account.actor_id, role: 'admin' })
    return made
  })

  it.each(['admin_account_list', 'cell_list', 'cell_get', 'role_grant_offer_list', 'account_token_list'])(
    'is refused %s before its input, by session, token and in process',
    async (method) => {
      const params = { zz_unknown: 1 }
      const calls = [
        () => test.service.call(method, params, { headers: { cookie } }),
        () => test.service.call(method, params, { headers: token.headers }),
        () =>
          (root.client as unknown as Record<string, (input: object) => Promise<unknown>>)[method]?.(params),
      ]
      for (const call of calls)
        expect(await reasonOf(call() as Promise<unknown>)).toBe('second_factor_enrolment_required')
    },
  )

  it('is refused an upgrade, a stream and /verify', async () => {
    for (const headers of [{ cookie }, token.headers]) {
      expect((await refusedUpgrade(test.url, headers)).json).toEqual(refused)
      expect((await send(test, 'GET /audit/stream', { headers })).json).toEqual(refused)
      expect((await send(test, 'GET /verify', { headers })).json).toEqual(refused)
    }
  })

  it('still reaches what shows and ends sessions', async () => {
    expect(await root.client.account_verify()).toMatchObject({ id: root.id })
    expect((await send(test, 'GET /status', { cookie })).status).toBe(200)
    expect((await root.client.account_session_list()).sessions).toHaveLength(1)
    const { username, password } = root
    const again = await send(test, 'POST /login', { body: { username, password } })
    expect(again.status).toBe(200)
    expect((await send(test, 'POST /logout', { cookie: again.cookie })).status).toBe(200)
  })
})

describe('a credential', () => {
  it('that is strong passes, and so do the tokens it makes', async () => {
    const root = await test.account({ roles: ['admin'] })
    await strengthen(root)
    await root.client.admin_account_list()
    const { client } = await tokenOf(test, root)
    await client.admin_account_list()
    expect((await openSocket(test.url, { cookie: root.cookie })).close()).toBeDefined()
  })

  it.each([
    ['ended', 'revoked_at = now()'],
    ['expired', "expires_at = date_trunc('milliseconds', now())"],
    ['scoped', "scope_kind = 'place', scope_id = actor_id"],
  ])('of an account whose grant is %s is not concerned', async (_what, change) => {
    const ada = await test.account({ roles: ['admin'] })
    expect(await reasonOf(ada.client.cell_list())).toBe('second_factor_enrolment_required')
    await db.run(sql`update role_grant set ${sql.raw(change)} where actor_id = ${ada.actor_id}::uuid`)
    expect(await reasonOf(ada.client.cell_list())).toBe('ok')
  })

  it('of a removed actor is not concerned', async () => {
    const ada = await test.account({ roles: ['admin'] })
    await test.actor(ada.id, 'other')
    await db.run(sql`update actor set deleted_at = now() where id = ${ada.actor_id}::uuid`)
    expect(await reasonOf(ada.client.cell_list())).toBe('ok')
  })
})

it('a role that comes while a socket is open: its next message is refused', async () => {
  const ada = await test.account()
  const socket = await openSocket(test.url, { cookie: ada.cookie })
  expect(await socket.call('cell_list')).toHaveProperty('result')
  await test.roleGrant({ actor_id: ada.actor_id, role: 'admin' })
  expect((await socket.call('cell_list')).error?.data).toEqual({ reason: 'second_factor_enrolment_required' })
  expect(await socket.call('account_verify')).toHaveProperty('result')
  await socket.close()
})

describe('a role that comes while sockets are open', async () => {
  const far = await testService({ database_url: test.databaseUrl, require_second_factor: 'admin' })
  afterAll(() => far.close())
  const root = await test.account({ roles: ['admin'] })
  await strengthen(root)
  const offerTo = ({ id }: TestAccount) =>
    root.client.role_grant_offer_create({ to_account_id: id, role: 'admin' })
  const retract = ({ offer: { offer_id } }: Awaited<ReturnType<typeof offerTo>>) =>
    root.client.role_grant_offer_retract({ offer_id })

  /**
   * The answer to what a node asked earlier decides whether the weak session hears what was kept from it. Such reads
   * alternate between two connections, each of which answers in order.
   */
  const answered = ({ service }: typeof test) =>
    Promise.all([1, 2].map(() => service.app.db.readOnly.point(sql`select`)))
  const granted = ({ actor_id }: TestAccount) => test.roleGrant({ actor_id, role: 'admin' })
  const missed = async ({ actor_id }: TestAccount) => {
    await db.run(sql`insert into role_grant (actor_id, role) values (${actor_id}::uuid, 'admin')`)
    await far.service.app.hub.check()
  }

  it.each([
    ['this node', test, granted],
    ['another node', far, granted],
    ['a node that missed the signal', far, missed],
  ])('silences those of a weak session until it is strong, on %s', async (_where, node, grant) => {
    const ada = await test.account()
    const weak = await openSocket(node.url, { cookie: ada.cookie })
    const other = await test.signIn(ada.id, { second_factor: true })
    const strong = await openSocket(node.url, { cookie: other.cookie })
    const before = await offerTo(ada)
    for (const socket of [weak, strong])
      expect((await socket.next()).method).toBe('role_grant_offer_received')
    await grant(ada)
    await retract(before)
    expect((await strong.next()).method).toBe('role_grant_offer_retracted')
    expect((await weak.call('cell_list')).error?.data.reason).toBe('second_factor_enrolment_required')
    await answered(node)
    await strengthen(ada)
    await offerTo(ada)
    expect((await weak.next()).method).toBe('role_grant_offer_received')
    expect(weak.order).toEqual(['role_grant_offer_received', 'reply', 'role_grant_offer_received'])
    await Promise.all([weak, strong].map((socket) => socket.close()))
  })
})

it('a role that comes while streams are open ends them, on every node', async () => {
  const strict = {
    audit_stream: true,
    roles: [{ name: 'auditor', grant_paths: ['admin'] }],
    require_second_factor: ['auditor'],
  }
  await using node = await testService(strict)
  await using other = await testService({ ...strict, database_url: node.databaseUrl })
  const root = await node.account({ roles: ['admin'] })
  const streams = await Promise.all([node, other].map((one) => openStream(one, { cookie: root.cookie })))
  expect(streams.map(({ status }) => status)).toEqual([200, 200])
  await node.roleGrant({ actor_id: root.actor_id, role: 'auditor' })
  for (const stream of streams)
    expect((await stream.rest()).at(-1)).toMatchObject({ event: 'close', data: { reason: 'role_lost' } })
})

it('costs no statement', async () => {
  const root = await test.account({ roles: ['admin'] })
  await strengthen(root)
  await root.client.account_verify()
  // Writes the last uses of the tokens above.
  await test.service.app.lastUsed.flush()
  statements.length = 0
  await root.client.account_verify()
  expect(statements).toHaveLength(1)
})

it('names registered roles only', async () => {
  await expect(testService({ require_second_factor: 'amdin' })).rejects.toThrow(
    /require_second_factor entry 1 must be a registered role; did you mean admin/,
  )
})
