import { beforeEach, describe, expect, it } from 'vitest'
import { clientWith, daemonHeaders } from '../../test/helpers/callers.ts'
import { call, rpc } from '../../test/helpers/http.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount, type TestService, testService } from '../testing/index.ts'

const test = await serviceForFile()
// Each test makes its own keeper, and must not find one of another test.
beforeEach(() => run(sql`delete from account`))

const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)
/** The account id that a request with these headers acts as; null: none. */
const whoIs = async (headers: Record<string, string>, at: TestService = test) => {
  const outcome = await clientWith(at, headers).try.account_verify()
  return outcome.ok ? outcome.result.id : null
}
const withToken = (token: string) => ({ 'x-daemon-token': token })

describe('the daemon token', () => {
  it('acts as the keeper with the current or the previous token, and with no other', async () => {
    const keeper = await test.account({ roles: ['keeper'] })
    const oldest = test.daemonToken.current
    const previous = test.daemonToken.rotate()
    expect(await whoIs(withToken(oldest))).toBe(keeper.id)
    const current = test.daemonToken.rotate()
    expect(await whoIs(withToken(current))).toBe(keeper.id)
    expect(await whoIs(withToken(previous))).toBe(keeper.id)
    expect(await whoIs(withToken(oldest))).toBeNull()
    for (const other of [
      'o'.repeat(43),
      current.slice(1),
      `${current}c`,
      `${current.slice(1)}!`,
      current.toUpperCase(),
      `${current}, ${current}`,
      '',
    ])
      expect([other, await whoIs(withToken(other))]).toEqual([other, null])
  })

  it('without a previous one accepts the current one only', async () => {
    const current = 'c'.repeat(43)
    await using alone = await testService({ daemon_token_state: { current } })
    const keeper = await alone.account({ roles: ['keeper'] })
    expect(await whoIs(withToken(current), alone)).toBe(keeper.id)
    expect(await whoIs(withToken('undefined'.padEnd(43, 'x')), alone)).toBeNull()
  })

  it('is ignored if the service has none', async () => {
    await using without = await testService({ daemon_token_state: undefined })
    const keeper = await without.account({ roles: ['keeper'] })
    expect(await whoIs(daemonHeaders(without), without)).toBeNull()
    expect(await whoIs({ ...daemonHeaders(without), cookie: keeper.cookie }, without)).toBe(keeper.id)
  })

  it('is no credential while there is no keeper', async () => {
    await test.account({ roles: ['admin'] })
    expect(await whoIs(daemonHeaders(test))).toBeNull()
  })

  it('beats the session of another account; an unknown one does not', async () => {
    const keeper = await test.account({ roles: ['keeper'] })
    const { cookie, id } = await test.account()
    expect(await whoIs({ ...daemonHeaders(test), cookie })).toBe(keeper.id)
    expect(await whoIs({ ...withToken('o'.repeat(43)), cookie })).toBe(id)
  })

  it('that finds no keeper leaves the session in force', async () => {
    const { cookie, id } = await test.account()
    expect(await whoIs({ ...daemonHeaders(test), cookie })).toBe(id)
  })

  it('is no credential in a request from a page', async () => {
    await test.account({ roles: ['keeper'] })
    for (const context of [{ origin: 'http://localhost:1' }, { referer: '' }] as Record<string, string>[])
      expect(await whoIs({ ...daemonHeaders(test), ...context })).toBeNull()
  })

  it('is shown by /status and /verify like any credential', async () => {
    const keeper = await test.account({ roles: ['keeper'] })
    const { account } = test.daemonClient()
    expect(await account.status()).toMatchObject({
      account: { id: keeper.id },
      role_grants: [{ role: 'keeper' }],
    })
    expect(await account.verify()).toBeNull()
  })
})

describe('the keeper', () => {
  const ends: [string, (keeper: TestAccount) => ReturnType<typeof sql>][] = [
    [
      'its grant is revoked',
      (k) => sql`update role_grant set revoked_at = now() where actor_id = ${k.actor_id}`,
    ],
    [
      'its grant expires',
      (k) =>
        sql`update role_grant set expires_at = date_trunc('milliseconds', now()) where actor_id = ${k.actor_id}`,
    ],
    [
      'its grant is closed',
      (k) => sql`update role_grant set closed_at = now() where actor_id = ${k.actor_id}`,
    ],
    [
      'its grant gets a scope',
      (k) =>
        sql`update role_grant set scope_kind = 'room', scope_id = ${k.id} where actor_id = ${k.actor_id}`,
    ],
    [
      'its grant has another role',
      (k) => sql`update role_grant set role = 'admin' where actor_id = ${k.actor_id}`,
    ],
    ['its actor is removed', (k) => sql`update actor set deleted_at = now() where id = ${k.actor_id}`],
    ['its account is deleted', (k) => sql`update account set deleted_at = now() where id = ${k.id}`],
    ['its account is purged', (k) => sql`delete from account where id = ${k.id}`],
  ]
  it.each(ends)('has ended at the next request when %s', async (_what, change) => {
    const keeper = await test.account({ roles: ['keeper'] })
    expect(await whoIs(daemonHeaders(test))).toBe(keeper.id)
    await run(change(keeper))
    expect(await whoIs(daemonHeaders(test))).toBeNull()
  })

  it('is the account with the lowest id of several, and after its end the next one', async () => {
    const keepers = await Promise.all(Array.from({ length: 4 }, () => test.account({ roles: ['keeper'] })))
    const ids = keepers.map(({ id }) => id).sort()
    for (const id of ids) {
      expect(await whoIs(daemonHeaders(test))).toBe(id)
      await run(sql`update account set deleted_at = now() where id = ${id}::uuid`)
    }
    expect(await whoIs(daemonHeaders(test))).toBeNull()
  })

  it('with two actors acts as the one it names, on methods that take one only', async () => {
    const keeper = await test.account({ roles: ['keeper'] })
    const second = await test.actor(keeper.id, 'second')
    const bob = await test.account()
    const client = test.daemonClient()
    const purge = { account_id: bob.id, confirm: true }
    const outcome = await client.try.account_purge(purge)
    expect(outcome).toMatchObject({
      ok: false,
      error: {
        reason: 'actor_required',
        data: {
          available: [
            { id: keeper.actor_id, name: keeper.username },
            { id: second, name: 'second' },
          ],
        },
      },
    })
    expect(await whoIs(daemonHeaders(test))).toBe(keeper.id)
    expect(await reasonOf(client.account_purge({ ...purge, acting: second }))).toBe(
      'insufficient_permissions',
    )
    expect(await reasonOf(client.account_purge({ ...purge, acting: bob.actor_id }))).toBe(
      'actor_not_on_account',
    )
    expect(await reasonOf(client.account_purge({ ...purge, acting: keeper.actor_id.toUpperCase() }))).toBe(
      'ok',
    )
  })

  it('whose keeper grant sits on a second actor is found all the same', async () => {
    const keeper = await test.account()
    const second = await test.actor(keeper.id, 'second')
    await test.roleGrant({ actor_id: second, role: 'keeper' })
    expect(await whoIs(daemonHeaders(test))).toBe(keeper.id)
  })

  it('is in the audit row with the type of its credential', async () => {
    const keeper = await test.account({ roles: ['keeper'] })
    const bob = await test.account()
    await scenario(test, () => test.daemonClient().account_purge({ account_id: bob.id, confirm: true }), {
      audit: [
        {
          event_type: 'account_purge',
          account_id: keeper.id,
          actor_id: keeper.actor_id,
          target_account_id: bob.id,
          metadata: { username: bob.username, email: null, credential_type: 'daemon_token' },
        },
        { event_type: 'actor_purge', account_id: keeper.id, target_actor_id: bob.actor_id },
      ],
    })
  })

  it('has the limits of its account, like anybody', async () => {
    await using limited = await testService({ limit_admin_write: '1/900' })
    await limited.account({ roles: ['keeper'] })
    const params = { account_id: '00000000-0000-4000-8000-000000000000', confirm: true }
    const statuses: number[] = []
    for (let i = 0; i < 2; i++)
      statuses.push((await rpc(limited.url, call('account_purge', params), daemonHeaders(limited))).status)
    expect(statuses).toEqual([404, 429])
  })
})
