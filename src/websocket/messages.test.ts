import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { call, rpc } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { openSocket, outcomeOf, type TestSocket } from '../../test/helpers/sockets.ts'
import { query } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'

let statements = 0
const test = await serviceForFile({
  limit_lookup: '3/900',
  actions: {
    who_is_it: query({
      doc: 'Who calls, as a method for everybody sees it.',
      auth: { account: 'none', actor: 'none' },
      output: z.object({ account: z.null(), credential: z.null(), grants: z.literal(0) }),
      handler: async (_input, { account, credential, role_grants }) =>
        ({ account, credential, grants: role_grants.length }) as never,
    }),
  },
  onStatement: () => {
    statements += 1
  },
})
const ada = await test.account({ roles: ['admin'] })

const openAs = ({ cookie }: TestAccount, path?: string): Promise<TestSocket> =>
  openSocket(test.url, { cookie }, path)

/** The answer to the frame; the reply to the `heartbeat` after it proves that nothing else came. */
async function answered(frame: unknown): Promise<unknown> {
  const socket = await openAs(ada)
  socket.send(frame)
  // Awaited first, because a heartbeat overtakes messages that wait for the socket's admission.
  const first = await socket.next()
  expect(await furtherOf(socket)).toEqual([])
  return first
}

/** What else has arrived. */
async function furtherOf(socket: TestSocket): Promise<unknown[]> {
  await socket.call('heartbeat', undefined, 'after')
  await socket.close()
  return socket.waiting
}

describe('a message', () => {
  it('with a broken envelope is answered as over HTTP', async () => {
    const broken = [
      '',
      'nonsense',
      '"text"',
      '1',
      'null',
      { jsonrpc: '1.0', id: 1, method: 'cell_get' },
      { id: 1, method: 'cell_get' },
      { jsonrpc: '2.0', id: null, method: 'cell_get' },
      { jsonrpc: '2.0', id: [], method: 'cell_get' },
      '{"jsonrpc":"2.0","id":9007199254740993,"method":"cell_get"}',
      { jsonrpc: '2.0', id: 'a', method: 1 },
      { jsonrpc: '2.0', id: 'a' },
      { jsonrpc: '2.0', id: 1.5, method: 'cell_get', params: [] },
      { jsonrpc: '2.0', id: '', method: 'cell_get', params: null },
      { jsonrpc: '2.0', id: 0, method: 'no_such_method' },
      `{"jsonrpc":"2.0","id":1,"method":"cell_get","params":${'{"a":'.repeat(101)}1${'}'.repeat(101)}}`,
      '['.repeat(100_000) + ']'.repeat(100_000),
    ]
    for (const frame of broken) {
      const overHttp = await rpc(test.url, typeof frame === 'string' ? frame : frame, { cookie: ada.cookie })
      expect(await answered(frame), String(frame).slice(0, 80)).toEqual(overHttp.json)
    }
  })

  it('may begin with one byte order mark', async () => {
    const frame = JSON.stringify(call('cell_list', {}, 'marked'))
    expect(await answered(`\ufeff${frame}`)).toMatchObject({ id: 'marked', result: {} })
    expect(await answered(`\ufeff\ufeff${frame}`)).toMatchObject({ id: null, error: { code: -32700 } })
  })

  it('that is an array or binary is refused without an id', async () => {
    const one = { jsonrpc: '2.0', id: 1, method: 'cell_list' }
    const batch = await answered([one])
    expect(batch).toMatchObject({
      id: null,
      error: { code: -32600, data: { detail: 'batch_not_supported' } },
    })
    const socket = await openAs(ada)
    socket.ws.send(Buffer.from(JSON.stringify(one)))
    expect(await socket.next()).toMatchObject({
      id: null,
      error: { code: -32700, data: { reason: 'parse_error' } },
    })
    await socket.close()
  })

  it('without an id, or that is a reply itself, is answered by nothing', async () => {
    const silent = [
      { jsonrpc: '2.0', method: 'account_session_revoke_all' },
      { jsonrpc: '2.0', method: 'cancel', params: { request_id: 'nothing' } },
      { jsonrpc: '2.0', method: 'cancel', params: { request_id: {} } },
      { jsonrpc: '2.0', method: 'cancel' },
      { jsonrpc: '2.0', id: 1, result: {} },
      { jsonrpc: '2.0', id: 1, error: { code: 1, message: 'x' } },
    ]
    for (const frame of silent) {
      const socket = await openAs(ada)
      socket.send(frame)
      expect(await furtherOf(socket)).toEqual([])
    }
    expect((await ada.client.account_session_list()).sessions).toHaveLength(1)
  })

  it('is guarded, judged and charged like the same call over HTTP', async () => {
    const eve = await test.account()
    const socket = await openAs(eve)
    for (const method of test.service.app.actions.keys()) {
      if (method.startsWith('rpc.')) continue
      const sent = { no_such_key: 1 }
      const { json } = await rpc(test.url, call(method, sent, 'x'), { cookie: eve.cookie })
      expect(await socket.call(method, sent, 'x')).toEqual(json)
    }
    expect(outcomeOf(await socket.call('actor_lookup', { ids: [eve.actor_id] }))).toBe('ok')
    await eve.client.actor_lookup({ ids: [eve.actor_id] })
    expect(outcomeOf(await socket.call('actor_lookup', { ids: [eve.actor_id] }))).toBe('ok')
    expect(outcomeOf(await socket.call('actor_lookup', { ids: [eve.actor_id] }))).toBe('-32006 rate_limited')
    await expect(eve.client.actor_lookup({ ids: [eve.actor_id] })).rejects.toThrow('rate_limited')
    await socket.close()
  })

  it('carries out what it asks for, with the address of the upgrade in the audit row', async () => {
    const socket = await openAs(ada)
    const { result } = await socket.call('cell_create', { data: { of: 'a socket' } }, 'mine')
    const { cell } = result as { cell: { id: string } }
    expect(await ada.client.cell_get({ id: cell.id })).toMatchObject({ cell: { data: { of: 'a socket' } } })
    const row = await test.service.app.db.first(sql`
      select ip, account_id, actor_id from audit_entries() where event_type = 'cell_create'`)
    expect(row).toEqual({ ip: '127.0.0.1', account_id: ada.id, actor_id: ada.actor_id })
    await socket.close()
  })

  it('for a public method tells it nothing of the caller, and needs a credential that is live', async () => {
    const eve = await test.account()
    const socket = await openAs(eve)
    expect(await socket.call('who_is_it')).toMatchObject({
      result: { account: null, credential: null, grants: 0 },
    })
    // By SQL, so no signal says that it is gone.
    await test.service.app.db.run(sql`delete from auth_session where account_id = ${eve.id}::uuid`)
    expect(outcomeOf(await socket.call('who_is_it'))).toBe('-32001 authentication_required')
    expect((await socket.closed).code).toBe(4001)
  })

  it('`heartbeat` is answered without the database, takes no params, and exists on sockets alone', async () => {
    const socket = await openAs(ada)
    await socket.call('account_session_list')
    const before = statements
    expect(await socket.call('heartbeat', {}, 7)).toEqual({ jsonrpc: '2.0', id: 7, result: {} })
    expect(statements).toBe(before)
    expect(await socket.call('heartbeat', { x: 1 })).toMatchObject({
      error: { code: -32602, data: { issues: [{ path: ['x'], code: 'unrecognized_keys' }] } },
    })
    await socket.close()
    const { status } = await rpc(test.url, call('heartbeat'), { cookie: ada.cookie })
    expect(status).toBe(404)
  })
})

describe('the actor of a message', () => {
  it('is the one named, else the default of the socket, else the choice is asked for', async () => {
    const eve = await test.account()
    const second = await test.actor(eve.id, 'second')
    const [plain, bound] = [await openAs(eve), await openAs(eve, `/api/ws?acting=${second}`)]
    const ownerOf = async (socket: TestSocket, params: object) => {
      const frame = await socket.call('cell_create', { data: {}, ...params })
      return frame.error?.data.reason ?? (frame.result as { cell: { created_by: string } }).cell.created_by
    }
    expect(await ownerOf(plain, {})).toBe('actor_required')
    expect(await ownerOf(plain, { acting: second })).toBe(second)
    expect(await ownerOf(bound, {})).toBe(second)
    expect(await ownerOf(bound, { acting: eve.actor_id })).toBe(eve.actor_id)
    expect(await ownerOf(bound, { acting: null })).toBe('invalid_params')
    expect(outcomeOf(await bound.call('account_session_list'))).toBe('ok')
    await test.service.operations.removeActor({ actor_id: second }, { via: 'test' })
    expect(await ownerOf(bound, {})).toBe('actor_not_on_account')
    expect(await ownerOf(bound, { acting: eve.actor_id })).toBe(eve.actor_id)
    await Promise.all([plain.close(), bound.close()])
  })

  it('has the roles of this moment: a revocation between two messages applies to the second', async () => {
    const eve = await test.account({ roles: ['admin'] })
    const socket = await openAs(eve)
    expect(outcomeOf(await socket.call('admin_account_list'))).toBe('ok')
    await test.service.operations.revokeRoleEverywhere(
      { actor_id: eve.actor_id, role: 'admin' },
      { via: 'test' },
    )
    expect(outcomeOf(await socket.call('admin_account_list'))).toBe('-32002 insufficient_permissions')
    await socket.close()
  })
})
