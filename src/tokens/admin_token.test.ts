import { describe, expect, it } from 'vitest'
import { plantTokens, tokenOf } from '../../test/helpers/callers.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { workOf } from '../../test/helpers/plans.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario } from '../testing/index.ts'

const test = await serviceForFile({ max_tokens: 'off' })
const admin = await test.account({ roles: ['admin'] })
const aTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

describe('admin_token_list', () => {
  it('shows the tokens of all accounts or of one, newest first, as their owner sees them, with the username', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const [old, expired] = (await plantTokens(test, ada, ['2 hours', '1 hour'], [null, '1 second'])) as [
      string,
      string,
    ]
    const { id, token } = await tokenOf(test, bob, { kind: 'read_only' })
    const { tokens, next_cursor } = await scenario(test, () => admin.client.admin_token_list())
    expect(next_cursor).toBeNull()
    expect(tokens.map((one) => [one.id, one.username])).toEqual([
      [id, bob.username],
      [expired, ada.username],
      [old, ada.username],
    ])
    expect(tokens[0]).toEqual({
      id,
      account_id: bob.id,
      username: bob.username,
      name: expect.any(String),
      scope: 'read_only',
      created_at: aTime,
      expires_at: null,
      last_used_at: null,
      last_used_ip: null,
    })
    expect(JSON.stringify(tokens)).not.toContain(token)
    const own = await admin.client.admin_token_list({ account_id: ada.id.toUpperCase() })
    expect(own.tokens.map((one) => one.id)).toEqual([expired, old])
    expect(own.tokens.map(({ username: _, ...one }) => one)).toEqual(
      (await ada.client.account_token_list()).tokens,
    )
    expect((await admin.client.admin_token_list({ account_id: crypto.randomUUID() })).tokens).toEqual([])
  })

  it('pages by reading its own rows, of all accounts and of one', async () => {
    const ada = await test.account()
    await test.service.app.db.run(sql`
      insert into api_token (id, account_id, name, token_hash, scope, created_at)
      select 'tok_' || lpad(i::text, 12, '0'), account.id, 'x', i::text, '{"version":1,"kind":"full"}', now() - i * interval '1 s'
      from generate_series(1, 5000) i, account where account.id = ${ada.id}::uuid`)
    await test.service.app.db.run(sql`analyze api_token`)
    for (const filter of [{}, { account_id: ada.id }]) {
      const { next_cursor: cursor } = await admin.client.admin_token_list(filter)
      for (const at of [null, cursor]) {
        const list = () => admin.client.admin_token_list({ ...filter, limit: 20, cursor: at })
        expect(await reasonOf(list())).toBe('ok')
        const { scanned, rows } = await workOf(test.databaseUrl, list)
        expect(scanned).toEqual([])
        expect(rows.api_token).toBeLessThanOrEqual(22)
      }
    }
  })
})

describe('admin_token_revoke', () => {
  it('ends a token of any account at once, and says whose it was in the log', async () => {
    const ada = await test.account()
    const { id: token_id, client } = await tokenOf(test, ada)
    expect((await client.account_verify()).id).toBe(ada.id)
    const revoke = () => admin.client.admin_token_revoke({ token_id })
    expect(
      await scenario(test, revoke, {
        audit: [
          {
            event_type: 'token_revoke',
            actor_id: admin.actor_id,
            account_id: admin.id,
            target_account_id: ada.id,
            target_actor_id: null,
            metadata: { token_id, credential_type: 'session' },
          },
        ],
      }),
    ).toEqual({ ok: true, revoked: true })
    expect(await reasonOf(client.account_verify())).toBe('authentication_required')
    expect(await scenario(test, revoke)).toEqual({ ok: true, revoked: false })
  })
})

describe.each(['admin_token_list', 'admin_token_revoke'] as const)('%s', (method) => {
  it('is for admins alone, and tells others nothing of a token', async () => {
    const ada = await test.account()
    const { id: token_id } = await tokenOf(test, ada)
    const input = method === 'admin_token_list' ? { account_id: ada.id } : { token_id }
    const call = (client: typeof ada.client) => (client[method] as (input: object) => Promise<unknown>)(input)
    expect(await reasonOf(call(ada.client))).toBe('insufficient_permissions')
    expect(await reasonOf(call(test.client()))).toBe('authentication_required')
    expect((await ada.client.account_token_list()).tokens).toHaveLength(1)
  })
})
