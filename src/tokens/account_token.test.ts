import { describe, expect, it } from 'vitest'
import { bearer, clientWith, eternal, plantTokens, tokenOf } from '../../test/helpers/callers.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { call, rpc } from '../../test/helpers/http.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sha256Hex } from '../auth/secrets.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const full = { kind: 'full' } as const
const captured = capturedLog()
const test = await serviceForFile({ log: captured.log })

const tokensOf = async ({ client }: TestAccount) => (await client.account_token_list()).tokens
const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)

describe('account_token_create', () => {
  it.each([
    [{ kind: 'full' } as const, 'full'],
    [{ kind: 'read_only' } as const, 'read_only'],
    [
      { kind: 'methods' as const, methods: ['cell_get', 'account_verify', 'cell_get'] },
      'methods:account_verify,cell_get',
    ],
  ])('of scope %j answers the label and the secret, and leaves one row', async (scope, label) => {
    const ada = await test.account()
    const made = await scenario(
      test,
      () => ada.client.account_token_create({ name: '  My script ', scope, lifetime: eternal }),
      {
        audit: [
          {
            event_type: 'token_create',
            account_id: ada.id,
            actor_id: null,
            target_account_id: null,
            target_actor_id: null,
            ip: '127.0.0.1',
          },
        ],
      },
    )
    expect(made).toEqual({
      ok: true,
      token: expect.stringMatching(/^secret_svc_token_[A-Za-z0-9_-]{43}$/),
      id: expect.stringMatching(/^tok_[A-Za-z0-9_-]{12}$/),
      name: 'My script',
      scope: label,
      expires_at: null,
    })
    const { token, ok: _ok, ...listed } = made as NonNullable<typeof made>
    expect(await tokensOf(ada)).toEqual([
      {
        ...listed,
        account_id: ada.id,
        created_at: expect.any(String),
        last_used_at: null,
        last_used_ip: null,
      },
    ])
    expect((await clientWith(test, bearer(token)).account_verify()).id).toBe(ada.id)
  })

  it('says in its row which token, of which kind and until when, and with which credential', async () => {
    const ada = await test.account()
    const { id, expires_at } = await ada.client.account_token_create({
      scope: { kind: 'read_only' },
      lifetime: { kind: 'ttl', days: 2 },
    })
    const row = await test.service.app.db.first<{ metadata: unknown }>(sql`
      select metadata from audit_entries() where event_type = 'token_create' and account_id = ${ada.id}::uuid`)
    expect(row?.metadata).toEqual({
      token_id: id,
      token_scope: 'read_only',
      expires_at,
      credential_type: 'session',
    })
  })

  it.each([1, 2, 365, 36_500])(
    'for %i days: ends so many days of 86 400 s after its creation',
    async (days) => {
      const ada = await test.account()
      const { expires_at } = await ada.client.account_token_create({
        scope: full,
        lifetime: { kind: 'ttl', days },
      })
      const [entry] = await tokensOf(ada)
      expect(Date.parse(expires_at as string) - Date.parse(entry?.created_at as string)).toBe(
        days * 86_400_000,
      )
      expect(entry?.expires_at).toBe(expires_at)
    },
  )

  it('without a name is called CLI token; a name has up to 100 code points', async () => {
    const ada = await test.account()
    const make = (name?: string) =>
      ada.client.account_token_create({ ...(name !== undefined && { name }), scope: full, lifetime: eternal })
    expect((await make()).name).toBe('CLI token')
    expect((await make('😀'.repeat(100))).name).toBe('😀'.repeat(100))
  })
})

describe('account_token_list', () => {
  it('shows the newest first, the newest 200, expired ones included, and nobody else’s', async () => {
    const ada = await test.account()
    const bob = await test.account()
    await tokenOf(test, bob)
    const ids = await plantTokens(
      test,
      ada,
      Array.from({ length: 201 }, (_, i) => `${i + 1} hours`),
      ['30 minutes'],
    )
    expect((await tokensOf(ada)).map(({ id }) => id)).toEqual(ids.slice(0, 200))
    expect(Object.keys((await tokensOf(bob))[0] as object).sort()).toEqual([
      'account_id',
      'created_at',
      'expires_at',
      'id',
      'last_used_at',
      'last_used_ip',
      'name',
      'scope',
    ])
  })

  it.each([
    '{"version":2,"kind":"full"}',
    '{"version":2,"kind":"read_only"}',
    '{"version":2,"kind":"methods","methods":["account_verify"]}',
    '{"version":1,"kind":"read_only","until":"tomorrow"}',
    '{"version":2}',
    '{}',
    '{"version":1,"kind":"root"}',
    '{"version":1,"kind":"methods"}',
    '{"version":1,"kind":"methods","methods":"cell_get"}',
    '{"version":1,"kind":"full","until":"tomorrow"}',
    '{"version":"1","kind":"full"}',
  ])('calls a stored scope of %s unreadable; it is no credential, and can be revoked', async (stored) => {
    const ada = await test.account()
    const { id, client } = await tokenOf(test, ada)
    await run(sql`update api_token set scope = ${stored}::jsonb where id = ${id}`)
    expect(await reasonOf(client.account_verify())).toBe('authentication_required')
    expect((await tokensOf(ada)).map(({ scope }) => scope)).toEqual(['unreadable'])
    expect(await ada.client.account_token_revoke({ token_id: id })).toEqual({ ok: true, revoked: true })
  })

  it('keeps a name in the label whose method has gone; it reaches nothing', async () => {
    const ada = await test.account()
    const { id, client } = await tokenOf(test, ada, { kind: 'methods', methods: ['account_verify'] })
    await run(sql`
      update api_token set scope = '{"version":1,"kind":"methods","methods":["gone"]}' where id = ${id}`)
    expect(await reasonOf(client.account_verify())).toBe('token_scope_required')
    expect((await tokensOf(ada))[0]?.scope).toBe('methods:gone')
  })
})

it('the secret and its hash stand nowhere but in the one answer', async () => {
  const ada = await test.account()
  const { token, id, client } = await tokenOf(test, ada)
  await client.account_verify()
  const { text: byGet } = await rpc(test.url, call('account_token_list'), bearer(token))
  await client.try.account_token_create({ scope: full, lifetime: eternal })
  await rpc(test.url, call('account_token_list'), { authorization: `Bearer ${token}x`, origin: test.url })
  await test.service.app.lastUsed.flush()
  await ada.client.account_token_revoke({ token_id: 'tok_AAAAAAAAAAAA' })

  const hash = sha256Hex(token)
  const secret = token.slice('secret_svc_token_'.length)
  expect(byGet).not.toContain(secret)
  expect(byGet).not.toContain(hash)
  expect(captured.text()).toContain('account_token_list')
  expect(captured.text()).not.toContain(secret)
  expect(captured.text()).not.toContain(hash)
  const { db } = test.service.app
  const tables = await db.rows<{ name: string }>(sql`
    select tablename as name from pg_tables where schemaname = current_schema()`)
  expect(tables.length).toBeGreaterThan(8)
  for (const { name } of tables) {
    const holding = (text: string) =>
      db.rows(sql`select from ${sql.raw(`"${name}"`)} t where strpos(to_jsonb(t)::text, ${text}) > 0`)
    expect([name, await holding(secret)]).toEqual([name, []])
    expect([name, (await holding(hash)).length]).toEqual([name, name === 'api_token' ? 1 : 0])
  }
  expect((await tokensOf(ada)).map((entry) => entry.id)).toEqual([id])
})
