import { describe, expect, it } from 'vitest'
import { tokenOf } from '../../test/helpers/callers.ts'
import { call, rpc } from '../../test/helpers/http.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'
import { insertAccount } from './accounts.ts'

const test = await serviceForFile({ limit_login_ip: 'off' })
/** Always there, so that no test here deletes the last admin. */
const admin = await test.account({ username: 'admin', roles: ['admin'] })

const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)
const first = async <T>(statement: ReturnType<typeof sql>): Promise<T> =>
  (await test.service.app.db.first<T>(statement)) as T
const asAdmin = async (account_id: string) => await reasonOf(admin.client.account_delete({ account_id }))
const nobody = '00000000-0000-4000-8000-000000000000'

describe('an account that is deleted', () => {
  it('gets a tombstone, as do its live actors, and its credentials end; the log says all of it', async () => {
    const ada = await test.account({ email: 'ada@example.com' })
    const second = await test.actor(ada.id, 'second')
    const removed = await test.actor(ada.id, 'removed')
    await run(sql`update actor set deleted_at = '2020-01-01T00:00:00Z' where id = ${removed}::uuid`)
    await tokenOf(test, ada)
    await tokenOf(test, ada)
    const envelope = { account_id: admin.id, actor_id: admin.actor_id, target_account_id: ada.id }
    const answer = await scenario(test, () => admin.client.account_delete({ account_id: ada.id }), {
      audit: [
        {
          event_type: 'account_delete',
          ...envelope,
          target_actor_id: null,
          metadata: { sessions_revoked: 1, tokens_revoked: 2, credential_type: 'session' },
        },
        ...[ada.actor_id, second].sort().map((target_actor_id) => ({
          event_type: 'actor_delete',
          ...envelope,
          target_actor_id,
          metadata: null,
        })),
      ],
    })
    expect(answer).toEqual({ ok: true, deleted: true })
    const account = await first<Record<string, string>>(sql`
      select username, email, deleted_at, deleted_by, updated_at, updated_by from account where id = ${ada.id}::uuid`)
    expect(account).toMatchObject({
      username: ada.username,
      email: 'ada@example.com',
      deleted_by: admin.actor_id,
      updated_at: account.deleted_at,
      updated_by: admin.actor_id,
    })
    const tombstone = {
      deleted_at: account.deleted_at,
      deleted_by: admin.actor_id,
      deleted_with_account: true,
    }
    const actors = await test.service.app.db.rows(sql`
      select deleted_at, deleted_by, deleted_with_account from actor
      where account_id = ${ada.id}::uuid order by id = ${removed}::uuid`)
    expect(actors).toEqual([
      tombstone,
      tombstone,
      { deleted_at: '2020-01-01T00:00:00.000Z', deleted_by: null, deleted_with_account: false },
    ])
  })

  it('is nobody from the next request on, by any carrier and in every view', async () => {
    const ada = await test.account({ username: 'adagone', email: 'gone@example.com' })
    const bob = await test.account()
    await test.roleGrant({ actor_id: ada.actor_id, role: 'admin' })
    const { client } = await tokenOf(test, ada)
    await ada.client.account_delete()
    for (const caller of [ada.client, client]) {
      expect(await reasonOf(caller.account_verify())).toBe('authentication_required')
      expect(await reasonOf(caller.admin_account_list())).toBe('authentication_required')
      await expect(caller.account.status()).rejects.toMatchObject({ reason: 'authentication_required' })
      await expect(caller.account.verify()).rejects.toMatchObject({ reason: 'authentication_required' })
    }
    for (const username of ['adagone', 'GONE@example.com'])
      await expect(test.client().account.login({ username, password: ada.password })).rejects.toMatchObject({
        reason: 'invalid_credentials',
      })
    expect(await bob.client.actor_lookup({ ids: [ada.actor_id] })).toEqual({ actors: [] })
    expect(await admin.client.actor_search({ query: 'adagone' })).toEqual({ actors: [] })
    expect(await reasonOf(admin.client.admin_session_revoke_all({ account_id: ada.id }))).toBe(
      'account_not_found',
    )
  })

  it('keeps its username and e-mail, its grants and its offers', async () => {
    const ada = await test.account({ username: 'kept', email: 'Kept@example.com' })
    await test.roleGrant({ actor_id: ada.actor_id, role: 'admin' })
    await run(sql`
      insert into role_grant_offer (from_actor_id, from_account_id, to_account_id, role, expires_at)
      values (${ada.actor_id}, ${ada.id}, ${admin.id}, 'admin', now() + interval '1 day'),
        (${admin.actor_id}, ${admin.id}, ${ada.id}, 'admin', now() + interval '1 day')`)
    await ada.client.account_delete()
    const { db } = test.service.app
    const insert = (username: string, email: string | null) =>
      insertAccount(db, { username, email, password_hash: 'x', created_by: null })
    await expect(insert('kept', null)).rejects.toMatchObject({ data: { reason: 'username_taken' } })
    await expect(insert('other', 'kept@EXAMPLE.com')).rejects.toMatchObject({
      constraint: 'account_email_key',
    })
    const kept = await first(sql`
      select (select count(*) from role_grant where actor_id = ${ada.actor_id}::uuid and revoked_at is null) as grants,
        (select count(*) from role_grant_offer where superseded_at is null
          and ${ada.id}::uuid in (from_account_id, to_account_id)) as offers`)
    expect(kept).toEqual({ grants: 1, offers: 2 })
  })
})

describe('one’s own account', () => {
  it.each<[string, (own: TestAccount) => object | undefined]>([
    ['without params', () => undefined],
    ['without an id', () => ({})],
    ['with a null id', () => ({ account_id: null })],
    ['by its id', ({ id }) => ({ account_id: id })],
    ['by its id in capitals', ({ id }) => ({ account_id: id.toUpperCase() })],
    ['as its actor', ({ actor_id }) => ({ acting: actor_id.toUpperCase() })],
  ])('%s is deleted by anybody', async (_what, params) => {
    const ada = await test.account()
    await scenario(test, () => ada.client.account_delete(params(ada) as object), {
      audit: [
        {
          event_type: 'account_delete',
          account_id: ada.id,
          actor_id: ada.actor_id,
          target_account_id: ada.id,
        },
        {
          event_type: 'actor_delete',
          account_id: ada.id,
          actor_id: ada.actor_id,
          target_actor_id: ada.actor_id,
        },
      ],
    })
    expect(await reasonOf(ada.client.account_verify())).toBe('authentication_required')
  })

  it('is deleted by an API token as well, which the row tells', async () => {
    const ada = await test.account()
    const { client } = await tokenOf(test, ada)
    await scenario(test, () => client.account_delete(), {
      audit: [
        {
          event_type: 'account_delete',
          account_id: ada.id,
          metadata: { sessions_revoked: 1, tokens_revoked: 1, credential_type: 'api_token' },
        },
        { event_type: 'actor_delete' },
      ],
    })
  })
})

describe('another account', () => {
  it('is out of reach of anyone but admins, with one answer whether it exists or not, and no row', async () => {
    const ada = await test.account()
    const [live, gone] = [await test.account(), await test.account()]
    await gone.client.account_delete()
    const answers: string[] = []
    for (const account_id of [live.id, gone.id, '3b241101-e2bb-4255-8caf-4136c566a962', nobody])
      await scenario(test, async () => {
        const { status, text } = await rpc(test.url, call('account_delete', { account_id }), {
          cookie: ada.cookie,
        })
        answers.push(`${status} ${text}`)
      })
    expect([...new Set(answers)]).toHaveLength(1)
    expect(answers[0]).toMatch(/^403 .*"reason":"insufficient_permissions","required_roles":\["admin"\]/)
    expect((await live.client.account_verify()).id).toBe(live.id)
  })

  const grants: [string, (actor_id: string) => ReturnType<typeof sql>][] = [
    [
      'scoped',
      (actor) =>
        sql`values (${actor}::uuid, 'admin', 'room', ${nobody}::uuid, null::timestamptz, null::timestamptz)`,
    ],
    ['expired', (actor) => sql`values (${actor}::uuid, 'admin', null, null::uuid, now(), null::timestamptz)`],
    ['revoked', (actor) => sql`values (${actor}::uuid, 'admin', null, null::uuid, null::timestamptz, now())`],
    [
      'keeper',
      (actor) =>
        sql`values (${actor}::uuid, 'keeper', null, null::uuid, null::timestamptz, null::timestamptz)`,
    ],
  ]
  it.each(grants)('is out of reach with a grant that is %s', async (_what, values) => {
    const [ada, bob] = [await test.account(), await test.account()]
    await run(sql`
      insert into role_grant (actor_id, role, scope_kind, scope_id, expires_at, revoked_at) ${values(ada.actor_id)}`)
    expect(await reasonOf(ada.client.account_delete({ account_id: bob.id }))).toBe('insufficient_permissions')
    await run(sql`delete from role_grant where actor_id = ${ada.actor_id}::uuid`)
  })

  it('is within reach of the actor that is admin, not of its sibling', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const second = await test.actor(ada.id, 'second')
    await test.roleGrant({ actor_id: second, role: 'admin' })
    const attempt = async (acting?: string) =>
      await reasonOf(
        ada.client.account_delete({ account_id: bob.id, ...(acting !== undefined && { acting }) }),
      )
    expect(await attempt()).toBe('actor_required')
    expect(await attempt(ada.actor_id)).toBe('insufficient_permissions')
    expect(await attempt(second)).toBe('ok')
  })

  it('that is already deleted stays as it is, without a row; only admins hear of it', async () => {
    const gone = await test.account()
    await gone.client.account_delete()
    const tombstone = () =>
      first(sql`select deleted_at, deleted_by, updated_at from account where id = ${gone.id}::uuid`)
    const before = await tombstone()
    const remove = () => admin.client.account_delete({ account_id: gone.id })
    expect(await scenario(test, remove)).toEqual({ ok: true, deleted: false })
    expect(await tombstone()).toEqual(before)
    const bob = await test.account()
    for (const account_id of [gone.id, nobody])
      expect(await reasonOf(bob.client.account_delete({ account_id }))).toBe('insufficient_permissions')
  })

  it('is deleted once by two at the same time', async () => {
    const [bob, other] = [await test.account(), await test.account({ roles: ['admin'] })]
    const remove = async ({ client }: TestAccount) =>
      (await client.account_delete({ account_id: bob.id })).deleted
    expect((await Promise.all([remove(admin), remove(other)])).sort()).toEqual([false, true])
    const { rows } = await first<{ rows: number }>(sql`
      select count(*) as rows from audit_entries()
      where event_type = 'account_delete' and outcome = 'success' and target_account_id = ${bob.id}::uuid`)
    expect(rows).toBe(1)
  })

  it('is not named by anything but an id', async () => {
    for (const account_id of ['', 'admin', 7, [], admin.id.slice(1)])
      expect(await asAdmin(account_id as string)).toBe('invalid_params')
  })
})
