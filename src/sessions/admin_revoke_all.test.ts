import { describe, expect, it } from 'vitest'
import { tokenOf } from '../../test/helpers/callers.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount, type TestService } from '../testing/index.ts'

/** What admins end in one call: the sessions of an account, or its tokens. */
const kinds = [
  {
    method: 'admin_session_revoke_all',
    event: 'session_revoke_all',
    /** Two live ones and an expired one; the client uses one of the live ones. */
    make: async (test: TestService, ada: TestAccount) => {
      const client = test.client()
      for (const each of [client, test.client()])
        await each.account.login({ username: ada.username, password: ada.password })
      await test.service.app.db.run(sql`
        update auth_session set expires_at = date_trunc('milliseconds', now()) where id in (
          select id from auth_session where account_id = ${ada.id}::uuid order by created_at limit 1)`)
      return client
    },
    /** An expired session does not count as ended; an expired token does. */
    count: 2,
    table: 'auth_session',
  },
  {
    method: 'admin_token_revoke_all',
    event: 'token_revoke_all',
    make: async (test: TestService, ada: TestAccount) => {
      const { client } = await tokenOf(test, ada)
      for (let i = 0; i < 2; i++) await tokenOf(test, ada, { kind: 'read_only' })
      await test.service.app.db.run(sql`
        update api_token set expires_at = date_trunc('milliseconds', now()) where id in (
          select id from api_token where account_id = ${ada.id}::uuid order by created_at desc limit 1)`)
      return client
    },
    count: 3,
    table: 'api_token',
  },
] as const

const test = await serviceForFile({ limit_login_ip: 'off', max_sessions: 'off' })
const admin = await test.account({ roles: ['admin'] })

const nobody = '00000000-0000-4000-8000-000000000000'

describe.each(kinds)('$method', ({ method, event, make, count, table }) => {
  const other = method === 'admin_session_revoke_all' ? 'api_token' : 'auth_session'
  const rowsOf = async ({ id }: TestAccount, of: string) =>
    (await test.service.app.db.rows(sql`select from ${sql.raw(of)} where account_id = ${id}::uuid`)).length

  it('ends all that live of one account, at once and nothing else; the log says how many', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const client = await make(test, ada)
    const bobs = await make(test, bob)
    const others = await rowsOf(ada, other)
    const answer = await scenario(test, () => admin.client[method]({ account_id: ada.id.toUpperCase() }), {
      audit: [
        {
          event_type: event,
          account_id: admin.id,
          actor_id: admin.actor_id,
          target_account_id: ada.id,
          target_actor_id: null,
          metadata: { count, credential_type: 'session' },
        },
      ],
    })
    expect(answer).toEqual({ ok: true, count })
    expect(await reasonOf(client.account_verify())).toBe('authentication_required')
    expect((await bobs.account_verify()).id).toBe(bob.id)
    expect(await rowsOf(ada, other)).toBe(others)
  })

  it('of an account that has none answers 0 and leaves no row', async () => {
    const ada = await test.account()
    await test.service.app.db.run(sql`delete from ${sql.raw(table)} where account_id = ${ada.id}::uuid`)
    expect(await scenario(test, () => admin.client[method]({ account_id: ada.id }))).toEqual({
      ok: true,
      count: 0,
    })
  })

  it('of a missing or deleted account is not found, and the row names it as attempted only', async () => {
    const gone = await test.account()
    await gone.client.account_delete()
    for (const account_id of [gone.id, nobody])
      await scenario(test, () => admin.client[method]({ account_id }), {
        reason: 'account_not_found',
        audit: [
          {
            event_type: event,
            outcome: 'failure',
            account_id: admin.id,
            actor_id: admin.actor_id,
            target_account_id: null,
            metadata: { reason: 'account_not_found', attempted_account_id: account_id },
          },
        ],
      })
  })

  it('of the admin’s own account is answered, and then binds', async () => {
    const own = await test.account({ roles: ['admin'] })
    const client = await make(test, own)
    expect(await client[method]({ account_id: own.id })).toEqual({ ok: true, count })
    expect(await reasonOf(client.account_verify())).toBe('authentication_required')
  })

  it('counts each once, however many admins end them at the same time', async () => {
    const ada = await test.account()
    await make(test, ada)
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => admin.client[method]({ account_id: ada.id })),
    )
    expect(answers.map((one) => one.count).sort()).toEqual([0, 0, 0, 0, count])
  })

  it.each([{}, { account_id: null }, { account_id: 'x' }, { account_id: nobody, all: true }])(
    'refuses %j',
    async (params) => {
      expect(await reasonOf(admin.client[method](params as { account_id: string }))).toBe('invalid_params')
    },
  )
})
