import { describe, expect, it } from 'vitest'
import { clientWith, daemonHeaders, tokenOf } from '../../test/helpers/callers.ts'
import { call, type Reply, rpc, send } from '../../test/helpers/http.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import type { AuthSpec } from '../core/method.ts'
import { type TestAccount, testService } from '../testing/index.ts'

type Token = Awaited<ReturnType<typeof tokenOf>>
const test = await serviceForFile()
// Two actors, so that a call which passes the credential guards ends at the actor or later.
const ada = await test.account()
await test.actor(ada.id, 'second')

/** The methods that require one type of credential. */
const typed: Record<string, string[]> = {
  account_session_revoke: ['session'],
  account_session_revoke_all: ['session'],
  account_token_create: ['session'],
  account_token_revoke: ['session'],
  account_purge: ['daemon_token'],
  admin_account_username_set: ['session', 'daemon_token'],
  admin_account_email_set: ['session', 'daemon_token'],
  admin_account_factors_clear: ['session', 'daemon_token'],
  admin_account_reset_link_create: ['session', 'daemon_token'],
  account_totp_enrol: ['session'],
  account_totp_confirm: ['session'],
  account_totp_remove: ['session'],
  account_recovery_codes_create: ['session'],
}

type Refused = { error?: { code: number; data: { reason: string } } }
/** Sends a key that no method knows, so that a call which passes the guards stops at the schema. */
const attempt = async (method: string, headers: Record<string, string>) => {
  const { status, json } = await rpc(test.url, call(method, { no_such_key: true }), headers)
  const { error } = json as Refused
  return { status, code: error?.code, data: error?.data }
}
const reached = (auth: AuthSpec) =>
  auth.actor === 'none' ? { reason: 'invalid_params' } : { reason: 'actor_required' }

describe('the token scope gate', () => {
  it('lets each method be reached exactly by the scopes of the contract', async () => {
    const { actions } = test.service.app
    const full = await tokenOf(test, ada)
    const readOnly = await tokenOf(test, ada, { kind: 'read_only' })
    const names = [...actions.keys()]
    expect(names.length).toBeGreaterThan(20)
    for (const [method, { auth, side_effects }] of actions) {
      const listing = await tokenOf(test, ada, { kind: 'methods', methods: [method] })
      const others = names.filter((name) => name !== method).slice(0, 100)
      const narrowed = await tokenOf(test, ada, { kind: 'methods', methods: others })
      const outcomes = async ({ headers }: Token) => [method, await attempt(method, headers)]

      const wrongType = {
        status: 403,
        code: -32002,
        data: { reason: 'credential_type_required', required_credential_types: typed[method] },
      }
      const wrongScope = {
        status: 403,
        code: -32002,
        data: { reason: 'token_scope_required', required_scope: `rpc:${method}` },
      }
      const passes = { status: 400, code: -32602, data: expect.objectContaining(reached(auth)) }
      const isPublic = auth.account === 'none'
      const expected = (reaches: boolean) => [
        method,
        isPublic ? passes : method in typed ? wrongType : reaches ? passes : wrongScope,
      ]
      expect(auth.credential_types).toEqual(typed[method])
      expect(await outcomes(full)).toEqual(expected(true))
      expect(await outcomes(listing)).toEqual(expected(true))
      expect(await outcomes(narrowed)).toEqual(expected(false))
      expect(await outcomes(readOnly)).toEqual(expected(!side_effects))
      for (const { id } of [listing, narrowed]) await ada.client.account_token_revoke({ token_id: id })
    }
  })

  it('binds over GET and in a batch, entry by entry', async () => {
    const { headers } = await tokenOf(test, ada, { kind: 'methods', methods: ['account_session_list'] })
    const get = (method: string) => send(test.url, { path: `/api/rpc?method=${method}&id=1`, headers })
    expect([(await get('account_session_list')).status, (await get('account_verify')).status]).toEqual([
      200, 403,
    ])
    const batch = ['account_session_list', 'account_verify', 'account_session_list'].map((m, i) =>
      call(m, {}, i),
    )
    const { json } = await rpc(test.url, batch, headers)
    expect((json as Refused[]).map(({ error }) => error?.data.reason)).toEqual([
      undefined,
      'token_scope_required',
      undefined,
    ])
  })

  it('comes before the role: an unlisted admin method is out of scope, a listed one out of reach', async () => {
    const bob = await test.account()
    const listed = await tokenOf(test, bob, { kind: 'methods', methods: ['admin_account_list'] })
    expect(await reasonOf(listed.client.admin_account_list())).toBe('insufficient_permissions')
    expect(await reasonOf(listed.client.admin_session_list())).toBe('token_scope_required')
    const admin = await test.account({ roles: ['admin'] })
    const own = await tokenOf(test, admin, { kind: 'methods', methods: ['admin_account_list'] })
    expect(await reasonOf(own.client.admin_account_list())).toBe('ok')
  })

  it('comes after the credential type, which needs neither scope, role, actor nor a well-formed input', async () => {
    const { headers } = await tokenOf(test, ada, { kind: 'read_only' })
    for (const params of [{}, undefined, { token_id: 7 }, { acting: 'me' }]) {
      const { json } = await rpc(test.url, call('account_token_revoke', params), headers)
      expect((json as Refused).error?.data.reason).toBe('credential_type_required')
    }
  })

  it('holds a present credential of an optional method to its scope', async () => {
    const bob = await test.account()
    const list = async (client: TestAccount['client']) => await reasonOf(client.cell_list())
    expect(await list(test.client())).toBe('ok')
    expect(
      await list((await tokenOf(test, bob, { kind: 'methods', methods: ['account_verify'] })).client),
    ).toBe('token_scope_required')
    expect(await list((await tokenOf(test, bob, { kind: 'read_only' })).client)).toBe('ok')
    expect(await list((await tokenOf(test, ada)).client)).toBe('actor_required')
  })
})

describe('the surfaces', () => {
  const reply = ({ status, json }: Reply) => [status, json ?? null]
  const at = (path: string, headers: Record<string, string>, method = 'GET', body?: unknown) =>
    send(test.url, { method, path: `/api/account${path}`, headers, body })

  it.each([
    ['full', { kind: 'full' } as const],
    ['methods', { kind: 'methods' as const, methods: ['account_verify'] }],
    ['read_only', { kind: 'read_only' } as const],
  ])(
    'to a token of scope %s: /verify asks for full, /status for nothing, the rest for a session',
    async (kind, scope) => {
      const { headers } = await tokenOf(test, ada, scope)
      const refused = [403, { error: 'token_scope_required', required_scope: 'surface:verify' }]
      expect(reply(await at('/verify', headers))).toEqual(kind === 'full' ? [200, null] : refused)
      expect((await at('/verify', headers, 'HEAD')).status).toBe(kind === 'full' ? 200 : 403)
      expect(reply(await at('/status', headers))).toEqual([
        200,
        { account: expect.objectContaining({ id: ada.id }), actor: null, role_grants: [] },
      ])
      const sessionOnly = [403, { error: 'credential_type_required', required_credential_types: ['session'] }]
      for (const path of ['/logout', '/password'])
        for (const body of [undefined, '{', {}])
          expect(reply(await at(path, headers, 'POST', body))).toEqual(sessionOnly)
      expect(
        (await at('/login', headers, 'POST', { username: ada.username, password: 'wrong' })).status,
      ).toBe(401)
    },
  )

  it('let no token do what a session is asked for, nor a daemon token', async () => {
    await test.account({ roles: ['keeper'] })
    for (const path of ['/logout', '/password'])
      expect(reply(await at(path, daemonHeaders(test), 'POST'))).toEqual([
        403,
        { error: 'credential_type_required', required_credential_types: ['session'] },
      ])
    expect((await at('/verify', daemonHeaders(test))).status).toBe(200)
  })
})

describe('account_purge', () => {
  it('answers every other credential alike, whatever its scope, actors and input', async () => {
    await test.account({ roles: ['keeper'] })
    const { headers } = await tokenOf(test, ada)
    const narrowed = await tokenOf(test, ada, { kind: 'read_only' })
    const cookie = { cookie: ada.cookie }
    const answers: string[] = []
    for (const sent of [
      cookie,
      headers,
      narrowed.headers,
      { ...cookie, 'x-daemon-token': 'x'.repeat(43) },
      { ...cookie, ...daemonHeaders(test), origin: 'http://localhost:1' },
      { ...cookie, ...daemonHeaders(test), referer: '' },
    ])
      for (const params of [undefined, { account_id: ada.id, confirm: true }, { acting: 1 }]) {
        const { status, text } = await rpc(test.url, call('account_purge', params), sent)
        answers.push(`${status} ${text}`)
      }
    expect([...new Set(answers)]).toEqual([
      expect.stringMatching(/^403 .*"required_credential_types":\["daemon_token"\]/),
    ])
  })

  it('asks for a credential before its type, and for the keeper role of the acting actor after it', async () => {
    await using other = await testService()
    const keeper = await other.account({ roles: ['keeper'] })
    const second = await other.actor(keeper.id, 'second')
    const purge = async (headers: Record<string, string>, acting?: string) =>
      await reasonOf(
        clientWith(other, headers).account_purge({
          account_id: keeper.id,
          ...(acting !== undefined && { acting }),
        }),
      )
    expect(await purge({})).toBe('authentication_required')
    expect(await purge(daemonHeaders(other))).toBe('actor_required')
    expect(await purge(daemonHeaders(other), second)).toBe('insufficient_permissions')
    expect(await purge(daemonHeaders(other), keeper.actor_id)).toBe('purge_not_confirmed')
  })
})
