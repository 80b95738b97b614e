import { describe, expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile()

const by = { via: 'cli' }
const nobody = '11111111-1111-1111-1111-111111111111'
const ops = () => test.service.operations
const isIn = (one: TestAccount) =>
  one.client.account_verify().then(
    () => true,
    () => false,
  )
const makeToken = (one: TestAccount) =>
  one.client.account_token_create({ scope: { kind: 'full' }, lifetime: { kind: 'eternal' } })
const sessionsOf = async ({ id }: TestAccount) =>
  (await ops().listSessions({ account_id: id })).sessions.map((session) => session.id)

describe('sessions', () => {
  it('one ends by its id, whosever it is', async () => {
    const ada = await test.account()
    const [session_id = ''] = await sessionsOf(ada)
    const revoke = () => ops().revokeSession({ session_id }, by)
    const done = await scenario(test, revoke, {
      audit: [
        {
          event_type: 'session_revoke',
          account_id: null,
          target_account_id: ada.id,
          metadata: { session_id, credential_type: null, via: 'cli' },
        },
      ],
    })
    expect(done).toEqual({ revoked: true })
    expect(await isIn(ada)).toBe(false)
    expect(await scenario(test, revoke)).toEqual({ revoked: false })
    await scenario(test, () => ops().revokeSession({ session_id: session_id.toUpperCase() }, by), {
      reason: 'invalid_params',
    })
  })

  it('an expired one counts as unknown', async () => {
    const ada = await test.account()
    const [session_id = ''] = await sessionsOf(ada)
    await test.service.app.db.run(
      sql`update auth_session set expires_at = date_trunc('milliseconds', now()) where id = ${session_id}`,
    )
    expect(await scenario(test, () => ops().revokeSession({ session_id }, by))).toEqual({ revoked: false })
    expect(await sessionsOf(ada)).toEqual([])
  })

  it('all of an account end together', async () => {
    const ada = await test.account()
    await test.client().account.login({ username: ada.username, password: ada.password })
    const revoke = () => ops().revokeSessions({ account_id: ada.id }, by)
    const metadata = { count: 2, credential_type: null, via: 'cli' }
    expect(
      await scenario(test, revoke, {
        audit: [{ event_type: 'session_revoke_all', target_account_id: ada.id, metadata }],
      }),
    ).toEqual({ count: 2 })
    expect(await scenario(test, revoke)).toEqual({ count: 0 })
  })
})

describe('tokens', () => {
  it('one ends by its id; all of an account end together, expired ones too', async () => {
    const ada = await test.account()
    const first = await makeToken(ada)
    await makeToken(ada)
    const late = await makeToken(ada)
    await test.service.app.db.run(
      sql`update api_token set expires_at = date_trunc('milliseconds', now()) where id = ${late.id}`,
    )
    const { tokens } = await ops().listTokens({ account_id: ada.id, limit: 2 })
    expect(tokens.map(({ id, username }) => [id, username])).toContainEqual([late.id, ada.username])
    expect(JSON.stringify(tokens)).not.toContain('token_hash')

    const revoke = () => ops().revokeToken({ token_id: first.id }, by)
    const metadata = { token_id: first.id, credential_type: null, via: 'cli' }
    expect(
      await scenario(test, revoke, {
        audit: [{ event_type: 'token_revoke', target_account_id: ada.id, metadata }],
      }),
    ).toEqual({ revoked: true })
    expect(await scenario(test, revoke)).toEqual({ revoked: false })
    const all = () => ops().revokeTokens({ account_id: ada.id }, by)
    expect(
      await scenario(test, all, {
        audit: [
          { event_type: 'token_revoke_all', metadata: { count: 2, credential_type: null, via: 'cli' } },
        ],
      }),
    ).toEqual({ count: 2 })
    expect(await scenario(test, all)).toEqual({ count: 0 })
  })
})

it('revoking all of a missing or deleted account leaves a row that names it as attempted', async () => {
  const gone = await test.account()
  await ops().deleteAccount({ account_id: gone.id }, by)
  for (const account_id of [nobody, gone.id])
    for (const [event_type, act] of [
      ['session_revoke_all', ops().revokeSessions],
      ['token_revoke_all', ops().revokeTokens],
    ] as const)
      await scenario(test, () => act({ account_id }, by), {
        reason: 'account_not_found',
        audit: [
          {
            event_type,
            outcome: 'failure',
            target_account_id: null,
            metadata: { reason: 'account_not_found', attempted_account_id: account_id, via: 'cli' },
          },
        ],
      })
})

describe('of everyone', () => {
  it('every session and token ends, with one row per account that lost something', async () => {
    await ops().revokeEverySession({}, by)
    await ops().revokeEveryToken({}, by)
    // More accounts than one batch holds.
    await test.service.app.db.run(sql`
      with made as (
        insert into account (username, password_hash) select 'many' || n, 'x' from generate_series(1, 450) n
        returning id
      )
      insert into auth_session (id, account_id, expires_at)
      select encode(sha256((id::text || n)::bytea), 'hex'), id, now() + interval '1 day'
      from made, generate_series(1, 2) n`)
    const ada = await test.account()
    await makeToken(ada)
    const idle = await test.account()
    await ops().revokeSessions({ account_id: idle.id }, by)

    const before = await test.service.app.db.first<{ written: number }>(
      sql`select max(written) as written from audit_log`,
    )
    expect(await ops().revokeEverySession({}, by)).toEqual({ count: 901, accounts: 451 })
    expect(await isIn(ada)).toBe(false)
    const rows = await test.service.app.db.rows<{ count: number; own: number }>(sql`
      select count(*) as count, count(distinct target_account_id) as own from audit_log
      where written > ${before?.written} and event_type = 'session_revoke_all' and outcome = 'success'
        and target_account_id <> ${idle.id}::uuid and account_id is null`)
    expect(rows).toEqual([{ count: 451, own: 451 }])

    expect(
      await scenario(test, () => ops().revokeEveryToken({}, by), {
        audit: [
          {
            event_type: 'token_revoke_all',
            target_account_id: ada.id,
            metadata: { count: 1, credential_type: null, via: 'cli' },
          },
        ],
      }),
    ).toEqual({ count: 1, accounts: 1 })
    expect(await scenario(test, () => ops().revokeEverySession({}, by))).toEqual({ count: 0, accounts: 0 })
  })
})
