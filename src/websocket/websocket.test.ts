import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { daemonHeaders, tokenOf } from '../../test/helpers/callers.ts'
import { send } from '../../test/helpers/http.ts'
import { openSocket, refusedUpgrade } from '../../test/helpers/sockets.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'

const origin = 'http://localhost:5173'
let test: TestService
let ada: TestAccount
beforeAll(async () => {
  test = await testService()
  ada = await test.account()
})
afterAll(() => test.close())

/** Opens a socket, calls a method that shows the account, and closes the socket. */
async function whoIs(headers: Record<string, string>, path?: string): Promise<string> {
  const socket = await openSocket(test.url, headers, path)
  const { result } = await socket.call('account_session_list')
  await socket.close()
  return (result as { sessions: { account_id: string }[] }).sessions[0]?.account_id ?? 'nobody'
}
const refusal = async (headers: Record<string, string>, path?: string) => {
  const { status, json } = await refusedUpgrade(test.url, headers, path)
  return [status, json]
}

describe('an upgrade', () => {
  it('is open to a session, a full token and the daemon token', async () => {
    const { headers } = await tokenOf(test, ada)
    const keeper = await test.account({ roles: ['keeper'] })
    expect(await whoIs({ cookie: ada.cookie })).toBe(ada.id)
    expect(await whoIs({ cookie: ada.cookie, origin })).toBe(ada.id)
    expect(await whoIs(headers)).toBe(ada.id)
    expect(await whoIs({ cookie: 'svc_session=garbage', ...headers })).toBe(ada.id)
    expect(await whoIs(daemonHeaders(test))).toBe(keeper.id)
  })

  it('without a credential that counts is 401, with the whole answer of any other refusal', async () => {
    const { headers } = await tokenOf(test, ada)
    const refused = await refusedUpgrade(test.url, { 'x-request-id': 'upgrade-1' })
    expect([refused.status, refused.json]).toEqual([401, { error: 'authentication_required' }])
    expect(refused.headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      vary: 'Cookie, Authorization, Origin',
      'x-content-type-options': 'nosniff',
      'x-request-id': 'upgrade-1',
      connection: 'close',
    })
    expect(refused.headers).not.toHaveProperty('sec-websocket-accept')
    const anonymous = [401, { error: 'authentication_required' }]
    expect(await refusal({ ...headers, origin })).toEqual(anonymous)
    expect(await refusal({ ...headers, referer: '' })).toEqual(anonymous)
    expect(await refusal({ authorization: `${headers.authorization}x` })).toEqual(anonymous)
    expect(await refusal({}, `/api/ws?token=${headers.authorization.slice(7)}`)).toEqual(anonymous)
  })

  it('with an expired session, or one of a deleted account, is 401', async () => {
    const [old, gone] = [await test.account(), await test.account()]
    await test.service.app.db.run(sql`
      update auth_session set created_at = now() - interval '31 days', expires_at = now() - interval '1 ms'
      where account_id = ${old.id}::uuid`)
    await gone.client.account_delete({ account_id: gone.id })
    for (const { cookie } of [old, gone])
      expect(await refusal({ cookie })).toEqual([401, { error: 'authentication_required' }])
  })

  it('is open to a narrowed token; each message is held to its scope', async () => {
    const eve = await test.account()
    await test.account({ roles: ['admin'] })
    const granted = await test.roleGrant({ actor_id: eve.actor_id, role: 'admin' })
    const { headers: readOnly } = await tokenOf(test, eve, { kind: 'read_only' })
    const { headers: listed } = await tokenOf(test, eve, { kind: 'methods', methods: ['account_verify'] })
    const [reader, verifier] = [await openSocket(test.url, readOnly), await openSocket(test.url, listed)]
    expect(await verifier.call('account_verify')).toMatchObject({ result: { id: eve.id } })
    expect(await reader.call('cell_list')).toMatchObject({ result: { cells: [] } })
    for (const [socket, method] of [
      [reader, 'cell_create'],
      [verifier, 'cell_list'],
    ] as const)
      expect(await socket.call(method, { data: {} })).toMatchObject({
        error: { data: { reason: 'token_scope_required', required_scope: `rpc:${method}` } },
      })
    // Registered like any other socket of the account, it hears what happens to the account.
    await test.service.operations.revokeRoleEverywhere(
      { actor_id: eve.actor_id, role: 'admin' },
      { via: 'test' },
    )
    for (const socket of [reader, verifier]) {
      expect(await socket.next()).toMatchObject({
        method: 'role_grant_revoke',
        params: { role_grant_id: granted.role_grant_id },
      })
      await socket.close()
    }
  })

  it('tells a token that names methods only of what one of them shows', async () => {
    const [admin, eve] = [await test.account({ roles: ['admin'] }), await test.account()]
    const scopes: Parameters<typeof tokenOf>[2][] = [
      { kind: 'full' },
      { kind: 'read_only' },
      { kind: 'methods', methods: ['role_grant_offer_list'] },
      { kind: 'methods', methods: ['account_verify'] },
    ]
    const opened = scopes.map(async (scope) => {
      const { headers } = await tokenOf(test, eve, scope)
      return await openSocket(test.url, headers)
    })
    const [full, reads, lists, other] = await Promise.all(opened)
    const { offer } = await admin.client.role_grant_offer_create({ to_account_id: eve.id, role: 'admin' })
    await test.roleGrant({ actor_id: eve.actor_id, role: 'admin' })
    await test.service.operations.revokeRoleEverywhere(
      { actor_id: eve.actor_id, role: 'admin' },
      { via: 'test' },
    )
    for (const socket of [full, reads, lists])
      expect(await socket?.next()).toMatchObject({
        method: 'role_grant_offer_received',
        params: { offer: { offer_id: offer.offer_id } },
      })
    // On every socket, this follows the offer.
    expect(await other?.next()).toMatchObject({ method: 'role_grant_revoke' })
    for (const socket of [full, reads, lists, other]) await socket?.close()
  })

  it('tells such a token nothing that a consumer declares, whatever its name', async () => {
    const notifications: object = { constructor: z.strictObject({}), page_changed: z.strictObject({}) }
    await using own = await testService({ notifications } as object)
    const bob = await own.account()
    const listed = await tokenOf(own, bob, { kind: 'methods', methods: ['account_verify'] })
    const [full, other] = await Promise.all([
      openSocket(own.url, { cookie: bob.cookie }),
      openSocket(own.url, listed.headers),
    ])
    const revoked = { role_grant_id: crypto.randomUUID(), role: 'admin', scope_id: null }
    await own.service.transaction({ event: 'role_grant_revoke', via: 'test' }, async ({ notify }) => {
      for (const name of Object.keys(notifications)) notify(bob.id, name as 'role_grant_revoke', {} as never)
      notify(bob.id, 'role_grant_revoke', revoked)
    })
    for (const method of ['constructor', 'page_changed', 'role_grant_revoke'])
      expect(await full.next()).toMatchObject({ method })
    expect(await other.next()).toMatchObject({ method: 'role_grant_revoke', params: revoked })
    for (const socket of [full, other]) await socket.close()
  })

  it('from an origin that is not listed is 403, with and without a credential', async () => {
    for (const foreign of ['https://evil.example', '', 'null'])
      for (const cookie of [ada.cookie, ''])
        expect(await refusal({ origin: foreign, ...(cookie && { cookie }) })).toEqual([
          403,
          { error: 'forbidden_origin' },
        ])
  })

  it('takes one query key, an actor of the account', async () => {
    const bob = await test.account()
    const cookie = { cookie: ada.cookie }
    const issues = (path: string, code: string) => ({
      error: 'invalid_query_params',
      issues: [{ path: [path], code, message: expect.any(String) }],
    })
    expect(await whoIs(cookie, `/api/ws?acting=${ada.actor_id.toUpperCase()}`)).toBe(ada.id)
    const foreign = [400, { error: 'actor_not_on_account' }]
    expect(await refusal(cookie, `/api/ws?acting=${bob.actor_id}`)).toEqual(foreign)
    expect(await refusal(cookie, '/api/ws?acting=x')).toEqual([400, issues('acting', 'invalid_format')])
    expect(await refusal(cookie, '/api/ws?acting=')).toEqual([400, issues('acting', 'invalid_format')])
    expect(await refusal(cookie, '/api/ws?other=1')).toEqual([400, issues('other', 'unrecognized_keys')])
    expect((await refusal({}, '/api/ws?other=1'))[0]).toBe(401)
  })

  it('of an account with several actors opens without a choice', async () => {
    const eve = await test.account()
    await test.actor(eve.id, 'second')
    expect(await whoIs({ cookie: eve.cookie })).toBe(eve.id)
  })

  it('is 426 for a plain request, 405 for another verb, 404 beside the path', async () => {
    const { headers: sent } = await send(test.url, { path: '/api/ws' })
    expect(sent).toHaveProperty('content-type', 'application/json')
    const answer = async (path: string, method = 'GET', headers = {}) => {
      const { status, json } = await send(test.url, { path, method, headers })
      return [status, json]
    }
    expect(await answer('/api/ws')).toEqual([426, { error: 'upgrade_required' }])
    expect(await answer('/api/ws', 'POST')).toEqual([405, { error: 'method_not_allowed' }])
    expect(await answer('/api/ws/')).toEqual([404, { error: 'not_found' }])
    expect(await refusal({ cookie: ada.cookie }, '/api/ws/')).toEqual([404, { error: 'not_found' }])
    expect(await refusal({ cookie: ada.cookie }, '/API/ws')).toEqual([404, { error: 'not_found' }])
  })

  it('where sockets are off is 404', async () => {
    const off = await testService({ ws: false, database_url: test.databaseUrl })
    const { status, json } = await refusedUpgrade(off.url, { cookie: ada.cookie })
    await off.close()
    expect([status, json]).toEqual([404, { error: 'not_found' }])
  })

  it('is answered by a service until it closes, which ends its sockets with 1001', async () => {
    const node = await testService({ database_url: test.databaseUrl })
    const socket = await openSocket(node.url, { cookie: ada.cookie })
    expect(await socket.call('heartbeat')).toMatchObject({ result: {} })
    await node.close()
    expect(await socket.closed).toEqual({ code: 1001, reason: 'shutting down' })
  })

  it('beyond what the process may hold is 503 busy, before the credential is asked', async () => {
    const full = await testService({ max_connections: 1, database_url: test.databaseUrl })
    const socket = await openSocket(full.url, { cookie: ada.cookie })
    const refused = await refusedUpgrade(full.url)
    expect([refused.status, refused.json]).toEqual([503, { error: 'busy', retry_after: 1 }])
    expect(refused.headers['retry-after']).toBe('1')
    await socket.close()
    const next = await openSocket(full.url, { cookie: ada.cookie })
    expect(await next.call('heartbeat')).toMatchObject({ result: {} })
    await next.close()
    await full.close()
  })

  it('that finds the last place taken while its credential was read is busy too', async () => {
    const full = await testService({ max_connections: 1, database_url: test.databaseUrl })
    const headers = { cookie: ada.cookie, 'x-request-id': 'mine' }
    const both = await Promise.allSettled([openSocket(full.url, headers), openSocket(full.url, headers)])
    const [refused] = both.flatMap((one) => (one.status === 'rejected' ? [one.reason.reply] : []))
    expect([refused.status, refused.json]).toEqual([503, { error: 'busy', retry_after: 1 }])
    expect(refused.headers).toMatchObject({ 'x-request-id': 'mine', 'retry-after': '1' })
    await full.close()
  })
})
