import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { send, sessionIn } from '../../test/helpers/account-routes.ts'
import { eternal } from '../../test/helpers/callers.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { device, onLocalhost } from '../../test/helpers/passkeys.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { codeOf, firstStep, guarded, secondStep } from '../../test/helpers/totp.ts'
import { sha256Hex } from '../auth/secrets.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'

/** What a session has asked for happens before the session is ended, or not at all. */

const test = await serviceForFile({ max_tokens: 1, ...onLocalhost })
const { db } = test.service.app
const other = await rival(test.databaseUrl)
afterAll(() => other.close())

let ada: TestAccount
let session_id: string
beforeEach(async () => {
  ada = await test.account()
  session_id = sessionIn(ada.cookie)
})
const mint = () => ada.client.account_token_create({ scope: { kind: 'full' }, lifetime: eternal })
const post = async (route: string, body: object) => {
  const { json } = await send(test, route, { cookie: ada.cookie, body })
  return json?.error ?? 'done'
}

const calls: [string, () => Promise<unknown>][] = [
  ['POST /reauthenticate', () => post('POST /reauthenticate', { password: ada.password })],
  [
    'POST /password',
    () => post('POST /password', { current_password: ada.password, new_password: 'another long password' }),
  ],
  ['account_token_create', () => reasonOf(mint())],
  ['account_totp_enrol', () => reasonOf(ada.client.account_totp_enrol())],
  ['account_delete', () => reasonOf(ada.client.account_delete())],
]

describe('a call whose session is being ended is refused', () => {
  it.each(calls)('%s', async (_name, ask) => {
    await other.begin('delete from auth_session where id = $1', [session_id])
    const asked = ask()
    await Promise.race([asked, other.blocks(1)])
    await other.commit()
    expect(await asked).toBe('authentication_required')
    const left = sql`select count(*) as left from`
    expect(await db.one(sql`${left} auth_session where account_id = ${ada.id}::uuid`)).toEqual({ left: 0 })
    expect(await db.one(sql`${left} api_token where account_id = ${ada.id}::uuid`)).toEqual({ left: 0 })
  })
})

it('a deletion by a token that is being ended is refused', async () => {
  const { id, token } = await mint()
  await other.begin('delete from api_token where id = $1', [id])
  const asked = reasonOf(
    test.service.call('account_delete', {}, { headers: { authorization: `Bearer ${token}` } }),
  )
  await Promise.race([asked, other.blocks(1)])
  await other.commit()
  expect(await asked).toBe('authentication_required')
  expect(await reasonOf(ada.client.account_verify())).toBe('ok')
})

describe('a call of an admin about another account is refused', () => {
  let root: TestAccount
  let role_grant_id: string
  beforeEach(async () => {
    root = await test.account({ roles: ['admin'] })
    await mint()
  })
  const about = (account_id = ada.id) => ({ account_id })
  const withoutRole = { role_grant_offer_create: 'role_grant_offer_not_authorized' } as Record<string, string>
  const methods: [string, () => Promise<unknown>][] = [
    ['account_delete', () => root.client.account_delete(about())],
    ['account_undelete', () => root.client.account_undelete(about())],
    ['admin_session_revoke_all', () => root.client.admin_session_revoke_all(about())],
    ['admin_token_revoke_all', () => root.client.admin_token_revoke_all(about())],
    ['role_grant_assign', () => root.client.role_grant_assign({ to_account_id: ada.id, role: 'admin' })],
    [
      'role_grant_offer_create',
      () => root.client.role_grant_offer_create({ to_account_id: ada.id, role: 'admin' }),
    ],
    ['role_grant_revoke', () => root.client.role_grant_revoke({ actor_id: ada.actor_id, role_grant_id })],
  ]
  const state = () =>
    db.one(sql`
      select deleted_at, (select count(*) from auth_session where account_id = account.id) as sessions,
        (select count(*) from api_token where account_id = account.id) as tokens,
        (select count(*) from role_grant where actor_id = ${ada.actor_id}::uuid and revoked_at is null) as roles,
        (select count(*) from role_grant_offer where to_account_id = account.id) as offers
      from account where id = ${ada.id}::uuid`)

  it.each(methods)('%s, once the admin has lost the session or the role', async (method, call) => {
    if (method === 'account_undelete') await ada.client.account_delete()
    if (method === 'role_grant_revoke')
      role_grant_id = (await test.roleGrant({ actor_id: ada.actor_id, role: 'admin' })).role_grant_id
    const before = await state()
    const ask = async (endsIt: string, id: string) => {
      await other.begin('select from account where id = $1 for update', [ada.id])
      const asked = reasonOf(call())
      await Promise.race([asked, other.blocks(1)])
      await other.query(endsIt, [id])
      await other.commit()
      return await asked
    }
    const revoked = 'update role_grant set revoked_at = now() where actor_id = $1'
    expect(await ask(revoked, root.actor_id)).toBe(withoutRole[method] ?? 'insufficient_permissions')
    await other.query('update role_grant set revoked_at = null where actor_id = $1', [root.actor_id])
    const ended = 'delete from auth_session where id = $1'
    expect(await ask(ended, sessionIn(root.cookie))).toBe('authentication_required')
    expect(await state()).toEqual(before)
  })

  it('by an admin whom it would delete: of two who delete each other at once, the first succeeds', async () => {
    const rex = await test.account({ roles: ['admin'] })
    const [one, two] = await Promise.all([
      reasonOf(root.client.account_delete(about(rex.id))),
      reasonOf(rex.client.account_delete(about(root.id))),
    ])
    expect([one, two].sort()).toEqual(['authentication_required', 'ok'])
  })
})

it('a query whose account is purged meanwhile is refused', async () => {
  await other.begin('lock table account_totp in access exclusive mode')
  const asked = reasonOf(ada.client.account_sign_in_get())
  await Promise.race([asked, other.blocks(1)])
  await other.query('delete from account where id = $1', [ada.id])
  await other.commit()
  expect(await asked).toBe('account_vanished')
})

it('the end of a session waits for what the session has begun', async () => {
  const { id } = await mint()
  // The next token replaces this one, so it waits for this row.
  await other.begin('select from api_token where id = $1 for update', [id])
  const minted = mint()
  await other.blocks(1)
  const revoked = ada.client.account_session_revoke({ session_id })
  expect(await Promise.race([revoked, other.blocks(2).then(() => 'waits')])).toBe('waits')
  await other.commit()
  await Promise.all([minted, revoked])
  // A busy node may send the answers in another order.
  const written = await db.rows(sql`
    select event_type from audit_entries() where account_id = ${ada.id}::uuid order by written`)
  expect(written.slice(1)).toMatchObject(
    ['token_create', 'token_revoke', 'session_revoke'].map((event_type) => ({ event_type })),
  )
})

describe('what expires while a call waits for the account', () => {
  type Expires = 'auth_session' | 'api_token' | 'sign_in_flow' | 'account_totp'
  /** Rounded up, as it is stored, it might still be to come when the call goes on. */
  const now = `date_trunc('milliseconds', clock_timestamp())`
  /** Makes `call` wait for the lock of the account until a row of this table has expired. */
  async function expiring<T>(
    table: Expires,
    id: string,
    call: () => Promise<T>,
    account_id = ada.id,
    end = table === 'account_totp' ? `created_at = ${now} - interval '15 minutes'` : `expires_at = ${now}`,
  ) {
    await other.begin('select from account where id = $1 for update', [account_id])
    const asked = call()
    await Promise.race([asked, other.blocks(1)])
    await other.query(
      `update ${table} set ${end} where ${table === 'account_totp' ? 'account_id' : 'id'} = $1`,
      [id],
    )
    await other.commit()
    return await asked
  }
  const endings = () =>
    db.rows(sql`
      select event_type, metadata from audit_entries()
      where account_id = ${ada.id}::uuid and metadata ->> 'cause' in ('cap', 'replaced')`)

  it.each(calls)('is its session: %s is refused', async (_name, ask) => {
    expect(await expiring('auth_session', session_id, ask)).toBe('authentication_required')
    expect(await db.rows(sql`select from api_token where account_id = ${ada.id}::uuid`)).toEqual([])
  })

  it('is a token: it takes no slot of the cap', async () => {
    const { id } = await mint()
    expect(await expiring('api_token', id, mint)).toMatchObject({ ok: true })
    expect(await endings()).toEqual([])
  })

  it.each(['without', 'with'])('is a session: a login %s its cookie ends no session', async (how) => {
    await db.run(sql`
      insert into auth_session (id, account_id, created_at, expires_at)
      select md5(nth::text || ${ada.id}) || md5(nth::text), ${ada.id}::uuid, now(), now() + interval '1 day'
      from generate_series(1, 4) nth`)
    const body = { username: ada.username, password: ada.password }
    const login = () => send(test, 'POST /login', { body, cookie: how === 'with' ? ada.cookie : undefined })
    expect(await expiring('auth_session', session_id, login)).toMatchObject({ status: 200 })
    expect(await endings()).toEqual([])
  })

  it('is the flow of a login: its second step is refused', async () => {
    const bob = await guarded(test)
    const flow = (await firstStep(test, bob)).cookie as string
    const id = sha256Hex(flow.slice('svc_flow='.length))
    const step = () => secondStep(test, flow, { totp: codeOf(bob.secret) })
    expect(await expiring('sign_in_flow', id, step, bob.id)).toMatchObject({
      status: 409,
      json: { error: 'flow_expired' },
    })
  })

  it('is a TOTP secret that waits for its first code: it is not confirmed', async () => {
    const { secret } = await ada.client.account_totp_enrol()
    const confirm = () => reasonOf(ada.client.account_totp_confirm({ code: codeOf(secret) }))
    expect(await expiring('account_totp', ada.id, confirm)).toBe('flow_expired')
  })

  it.each<[string, () => Promise<unknown>]>([
    ['account_totp_enrol', () => ada.client.account_totp_enrol()],
    ['account_passkey_register_begin', () => ada.client.account_passkey_register_begin({})],
  ])('is the freshness of its session: %s is refused', async (_name, call) => {
    const stale = `authenticated_at = ${now} - interval '600 seconds'`
    expect(await expiring('auth_session', session_id, () => reasonOf(call()), ada.id, stale)).toBe(
      'fresh_authentication_required',
    )
  })

  it('is a session: an end of all counts it no more', async () => {
    const { client } = await test.account({ roles: ['admin'] })
    const byAdmin = () => client.admin_session_revoke_all({ account_id: ada.id })
    expect(await expiring('auth_session', session_id, byAdmin)).toMatchObject({ count: 0 })
    const bob = await test.account()
    const byOwner = () => bob.client.account_session_revoke_all()
    expect(await expiring('auth_session', sessionIn(bob.cookie), byOwner, bob.id)).toMatchObject({ count: 0 })
  })

  it('is the registration of a passkey: it is not added', async () => {
    const { options } = await ada.client.account_passkey_register_begin({})
    const response = device().create(options as never)
    const finish = () => reasonOf(ada.client.account_passkey_register_finish({ response }))
    expect(await expiring('sign_in_flow', session_id, finish)).toBe('flow_expired')
  })
})
