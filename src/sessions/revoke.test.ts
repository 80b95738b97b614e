import { describe, expect, it } from 'vitest'
import { send, sessionIn } from '../../test/helpers/account-routes.ts'
import { tokenOf } from '../../test/helpers/callers.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile({ limit_login_ip: 'off', limit_login_account: 'off', max_sessions: 'off' })
const admin = await test.account({ roles: ['admin'] })
const { operations: ops, app } = test.service

const by = { via: 'cli' }
const nobody = '00000000-0000-4000-8000-000000000000'
const run = (statement: ReturnType<typeof sql>) => app.db.run(statement)
const times = <T>(count: number, make: () => Promise<T>) => Promise.all(Array.from({ length: count }, make))

/** The two kinds of credentials that can be ended one by one, or all of an account at once. */
const kinds = [
  {
    kind: 'session',
    key: 'session_id',
    table: 'auth_session',
    make: async ({ username, password }: TestAccount) => {
      const { cookie } = await send(test, 'POST /login', { body: { username, password } })
      return { id: sessionIn(cookie), client: test.client(cookie as string) }
    },
    own: 'account_session_revoke',
    one: ops.revokeSession,
    admins: 'admin_session_revoke_all',
    all: ops.revokeSessions,
    /** An expired token is still listed, so it counts; an expired session does not. */
    endsExpired: false,
    invented: '0'.repeat(64),
    malformed: ['a'.repeat(63), 'a'.repeat(65), 'A'.repeat(64), `${'a'.repeat(63)}g`, `${'a'.repeat(64)}\n`],
  },
  {
    kind: 'token',
    key: 'token_id',
    table: 'api_token',
    make: (account: TestAccount) => tokenOf(test, account),
    own: 'account_token_revoke',
    one: ops.revokeToken,
    admins: 'admin_token_revoke_all',
    all: ops.revokeTokens,
    endsExpired: true,
    invented: 'tok_AAAAAAAAAAAA',
    malformed: [
      ...['', 'tok_', 'tok_AAAAAAAAAAA', 'tok_AAAAAAAAAAAAA', 'TOK_AAAAAAAAAAAA', 'tok_AAAAAAAAAAA!'],
      ...[' tok_AAAAAAAAAAAA', 'tok_AAAAAAAAAAAA\n'],
    ],
  },
] as const
type Kind = (typeof kinds)[number]

const expire = ({ table }: Kind, id: string) =>
  run(sql`
  update ${sql.raw(table)} set expires_at = date_trunc('milliseconds', now()) where id = ${id}`)
const rowsOf = async ({ id }: TestAccount, table: string) =>
  (await app.db.rows(sql`select from ${sql.raw(table)} where account_id = ${id}::uuid`)).length
const isDead = async (client: TestAccount['client']) =>
  (await reasonOf(client.account_verify())) === 'authentication_required'

type Own = (input: object) => Promise<{ revoked: boolean }>
/** Who ends one credential, and what the answer and the log then say. */
const enders = [
  {
    who: 'its owner',
    end: ({ own, key }: Kind, { client }: TestAccount, id: unknown) => (client[own] as Own)({ [key]: id }),
    ok: { ok: true },
    row: ({ id }: TestAccount) => ({ account_id: id, actor_id: null, ip: '127.0.0.1' }),
    said: { credential_type: 'session' },
  },
  {
    who: 'an operator',
    end: ({ one, key }: Kind, _owner: TestAccount, id: unknown) =>
      (one as (input: object, by: object) => Promise<{ revoked: boolean }>)({ [key]: id }, by),
    ok: {},
    row: () => ({ account_id: null, actor_id: null, ip: null }),
    said: { credential_type: null, via: 'cli' },
  },
]

describe.each(kinds)('one $kind', (kind) => {
  const { key, invented, malformed, endsExpired } = kind
  const event_type = `${kind.kind}_revoke`

  describe.each(enders)('ended by $who', ({ end, ok, row, said }) => {
    it('ends at once and once, with one row; others of the account stay', async () => {
      const ada = await test.account()
      const { id, client } = await kind.make(ada)
      const revoke = () => end(kind, ada, id)
      const answer = await scenario(test, revoke, {
        audit: [
          {
            event_type,
            ...row(ada),
            target_account_id: ada.id,
            target_actor_id: null,
            metadata: { [key]: id, ...said },
          },
        ],
      })
      expect(answer).toEqual({ ...ok, revoked: true })
      expect(await isDead(client)).toBe(true)
      expect((await ada.client.account_verify()).id).toBe(ada.id)
      expect(await scenario(test, revoke)).toEqual({ ...ok, revoked: false })
      expect(await scenario(test, () => end(kind, ada, invented))).toEqual({ ...ok, revoked: false })
    })

    it(`that has expired ${endsExpired ? 'counts, since it is listed' : 'counts as unknown'}`, async () => {
      const ada = await test.account()
      const { id } = await kind.make(ada)
      await expire(kind, id)
      const audit = endsExpired ? [{ event_type }] : []
      expect(await scenario(test, () => end(kind, ada, id), { audit })).toEqual({
        ...ok,
        revoked: endsExpired,
      })
    })

    it('says true to one of ten parallel calls', async () => {
      const ada = await test.account()
      const { id } = await kind.make(ada)
      const answers = await scenario(test, () => times(10, () => end(kind, ada, id)), {
        audit: [{ event_type }],
      })
      expect(answers.filter(({ revoked }) => revoked)).toHaveLength(1)
    })

    it('is named by an id of its form', async () => {
      const codes = [
        ...malformed.map((id) => [id, 'invalid_format']),
        [7, 'invalid_type'],
        [null, 'invalid_type'],
      ]
      for (const [id, code] of codes)
        await expect(end(kind, admin, id)).rejects.toMatchObject({
          data: { reason: 'invalid_params', issues: [{ path: [key], code, message: expect.any(String) }] },
        })
    })
  })

  it('of another account is like an invented one to anyone but its owner', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const foreign = await kind.make(bob)
    const answer = await scenario(test, () => (ada.client[kind.own] as Own)({ [key]: foreign.id }))
    expect(answer).toEqual({ ok: true, revoked: false })
    expect((await foreign.client.account_verify()).id).toBe(bob.id)
  })
})

/** Who ends all of an account, and what the answer and the log then say. */
const clearers = [
  {
    who: 'an admin',
    clear: ({ admins }: Kind, account_id: string) => admin.client[admins]({ account_id }),
    ok: { ok: true },
    row: { account_id: admin.id, actor_id: admin.actor_id },
    via: {},
    credential_type: 'session',
  },
  {
    who: 'an operator',
    clear: ({ all }: Kind, account_id: string) => all({ account_id }, by),
    ok: {},
    row: { account_id: null, actor_id: null },
    via: by,
    credential_type: null,
  },
]

describe.each(kinds)('every $kind of an account', (kind) => {
  const event_type = `${kind.kind}_revoke_all`
  const count = kind.endsExpired ? 3 : 2
  const other = kind.table === 'api_token' ? 'auth_session' : 'api_token'
  /** Two live ones, one of which will be used, an expired one, and one of the other kind. */
  const make = async () => {
    const account = await test.account()
    const [live, , expired] = [await kind.make(account), await kind.make(account), await kind.make(account)]
    await expire(kind, expired.id)
    if (kind.kind === 'session') {
      await tokenOf(test, account)
      await account.client.account_session_revoke({ session_id: sessionIn(account.cookie) })
    }
    return { ...account, client: live.client }
  }

  describe.each(clearers)('ended by $who', ({ clear, ok, row, via, credential_type }) => {
    it('ends at once and nothing else does; the log says how many', async () => {
      const [ada, bob] = [await make(), await make()]
      expect(await rowsOf(ada, other)).toBe(1)
      const all = () => clear(kind, ada.id.toUpperCase())
      const answer = await scenario(test, all, {
        audit: [
          {
            event_type,
            ...row,
            target_account_id: ada.id,
            target_actor_id: null,
            metadata: { count, credential_type, ...via },
          },
        ],
      })
      expect(answer).toEqual({ ...ok, count })
      expect(await isDead(ada.client)).toBe(true)
      expect((await bob.client.account_verify()).id).toBe(bob.id)
      expect(await rowsOf(ada, other)).toBe(1)
      expect(await scenario(test, all)).toEqual({ ...ok, count: 0 })
    })

    it('is not found of a missing or deleted account, which the row names as attempted only', async () => {
      const gone = await test.account()
      await gone.client.account_delete()
      const reason = 'account_not_found'
      for (const account_id of [gone.id, nobody])
        await scenario<unknown>(test, () => clear(kind, account_id), {
          reason,
          audit: [
            {
              event_type,
              outcome: 'failure',
              ...row,
              target_account_id: null,
              metadata: { reason, attempted_account_id: account_id, ...via },
            },
          ],
        })
    })

    it('counts each once, however many end them at the same time', async () => {
      const ada = await make()
      const answers = await times(5, () => clear(kind, ada.id))
      expect(answers.map((one) => one.count).sort()).toEqual([0, 0, 0, 0, count])
    })
  })

  it('of an admin’s own account is answered, and then ends', async () => {
    const own = await make()
    await test.roleGrant({ actor_id: own.actor_id, role: 'admin' })
    expect(await own.client[kind.admins]({ account_id: own.id })).toEqual({ ok: true, count })
    expect(await isDead(own.client)).toBe(true)
  })

  it.each([{}, { account_id: null }, { account_id: 'x' }, { account_id: nobody, all: true }])(
    'is not ended by %j',
    async (params) => {
      const call = admin.client[kind.admins](params as { account_id: string })
      expect(await reasonOf(call)).toBe('invalid_params')
    },
  )
})

it('operators list tokens with their owners and without hashes, and no expired session', async () => {
  const ada = await test.account()
  const [session, late] = [await kinds[0].make(ada), await tokenOf(test, ada)]
  await expire(kinds[0], session.id)
  await expire(kinds[1], late.id)
  const { tokens } = await ops.listTokens({ account_id: ada.id, limit: 2 })
  expect(tokens.map(({ id, username }) => [id, username])).toEqual([[late.id, ada.username]])
  expect(JSON.stringify(tokens)).not.toContain('token_hash')
  const { sessions } = await ops.listSessions({ account_id: ada.id })
  expect(sessions.map(({ id }) => id)).toEqual([sessionIn(ada.cookie)])
})

it('every session and token of everyone ends, with one row per account that lost something', async () => {
  await ops.revokeEverySession({}, by)
  await ops.revokeEveryToken({}, by)
  // More accounts than one batch holds.
  await run(sql`
    with made as (
      insert into account (username, password_hash) select 'many' || n, 'x' from generate_series(1, 450) n
      returning id
    )
    insert into auth_session (id, account_id, expires_at)
    select encode(sha256((id::text || n)::bytea), 'hex'), id, now() + interval '1 day'
    from made, generate_series(1, 2) n`)
  const ada = await test.account()
  await tokenOf(test, ada)
  const idle = await test.account()
  await ops.revokeSessions({ account_id: idle.id }, by)

  const before = await app.db.first<{ written: number }>(
    sql`select max(written) as written from audit_entries()`,
  )
  expect(await ops.revokeEverySession({}, by)).toEqual({ count: 901, accounts: 451 })
  expect(await isDead(ada.client)).toBe(true)
  const rows = await app.db.rows<{ count: number; own: number }>(sql`
    select count(*) as count, count(distinct target_account_id) as own from audit_entries()
    where written > ${before?.written} and event_type = 'session_revoke_all' and outcome = 'success'
      and target_account_id <> ${idle.id}::uuid and account_id is null`)
  expect(rows).toEqual([{ count: 451, own: 451 }])

  const metadata = { count: 1, credential_type: null, via: 'cli' }
  expect(
    await scenario(test, () => ops.revokeEveryToken({}, by), {
      audit: [{ event_type: 'token_revoke_all', target_account_id: ada.id, metadata }],
    }),
  ).toEqual({ count: 1, accounts: 1 })
  expect(await scenario(test, () => ops.revokeEverySession({}, by))).toEqual({ count: 0, accounts: 0 })
})
