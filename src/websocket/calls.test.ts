import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { rival } from '../../test/helpers/race.ts'
import { openSocket, outcomeOf, type TestSocket } from '../../test/helpers/sockets.ts'
import { mutation, query } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { testService } from '../testing/index.ts'

/** Handlers wait here until the test releases them. */
let gates: PromiseWithResolvers<void>[] = []
let arrived = (): void => {}
const entered = async (count: number): Promise<void> => {
  while (gates.length < count)
    await new Promise<void>((resolve) => {
      arrived = resolve
    })
}
const gate = async (): Promise<void> => {
  const one = Promise.withResolvers<void>()
  gates.push(one)
  arrived()
  await one.promise
}
const openGates = (): void => {
  for (const one of gates) one.resolve()
}

const auth = { account: 'required', actor: 'none' } as const
const actions = {
  slow: query({
    doc: 'Waits.',
    auth,
    output: z.string(),
    async handler() {
      await gate()
      return 'done'
    },
  }),
  fast: query({ doc: 'Waits for nothing.', auth, output: z.string(), handler: async () => 'done' }),
  large: query({
    doc: 'Takes a long text.',
    auth,
    input: z.strictObject({ text: z.string() }),
    output: z.number(),
    handler: async ({ text }) => text.length,
  }),
  broken: query({
    doc: 'Fails.',
    auth,
    output: z.null(),
    async handler() {
      throw new Error('a secret')
    },
  }),
  slow_write: mutation({
    doc: 'Waits inside its transaction.',
    auth,
    event: 'app_settings_update',
    output: z.string(),
    async handler(_input, { db }) {
      await gate()
      await db.run(sql`update account set updated_at = now() where username = 'ada'`)
      return 'done'
    },
  }),
  tell_me: mutation({
    doc: 'Notifies the caller.',
    auth,
    event: 'app_settings_update',
    output: z.string(),
    async handler(_input, { account, notify }) {
      const role_grant_id = '11111111-1111-1111-1111-111111111111'
      notify(account.id, 'role_grant_revoke', { role_grant_id, role: 'editor', scope_id: null })
      return 'done'
    },
  }),
}

let socket: TestSocket
const test = await testService({ actions })
const ada = await test.account({ username: 'ada' })
const other = await rival(test.databaseUrl)
afterAll(async () => {
  await other.close()
  await test.close()
})
beforeEach(async () => {
  gates = []
  socket = await openSocket(test.url, { cookie: ada.cookie })
  return () => socket.close()
})

/** Large enough to be handled in an event loop turn of its own. */
const large = 'x'.repeat(100_000)

const cancel = (request_id: unknown): void =>
  socket.send({ jsonrpc: '2.0', method: 'cancel', params: { request_id } })

describe('calls of one socket', () => {
  it('run at once, and are answered in the order in which they finish', async () => {
    const slow = socket.call('slow', {}, 'slow')
    await entered(1)
    expect(await socket.call('fast', {}, 'fast')).toMatchObject({ id: 'fast', result: 'done' })
    openGates()
    expect(await slow).toMatchObject({ id: 'slow', result: 'done' })
  })

  it('that fail unexpectedly say so without text, and the socket goes on', async () => {
    const { error } = await socket.call('broken')
    expect(error).toMatchObject({ code: -32603, data: { reason: 'internal_error' } })
    expect(JSON.stringify(error)).not.toContain('secret')
    expect(outcomeOf(await socket.call('fast'))).toBe('ok')
  })

  it('are 64 at most: the surplus is refused, heartbeats and the others are answered', async () => {
    const running = Array.from({ length: 64 }, (_, i) => socket.call('slow', {}, i))
    await entered(64)
    expect(outcomeOf(await socket.call('fast', {}, 'surplus'))).toBe('-32009 queue_overflow')
    expect(outcomeOf(await socket.call('heartbeat', {}, 'beat'))).toBe('ok')
    openGates()
    expect((await Promise.all(running)).map(outcomeOf)).toEqual(Array(64).fill('ok'))
    expect(outcomeOf(await socket.call('fast', {}, 'surplus'))).toBe('ok')
  })

  it('have ids of their own: one in flight is refused without an id, one answered may come again', async () => {
    const first = socket.call('slow', {}, 1)
    await entered(1)
    for (const method of ['fast', 'heartbeat']) {
      socket.send({ jsonrpc: '2.0', id: 1, method })
      expect(await socket.next()).toMatchObject({ id: null, error: { data: { detail: 'duplicate_id' } } })
    }
    expect(await socket.call('fast', {}, '1')).toMatchObject({ id: '1', result: 'done' })
    openGates()
    expect(await first).toMatchObject({ id: 1, result: 'done' })
    expect(await socket.call('fast', {}, 1)).toMatchObject({ id: 1, result: 'done' })
  })
})

describe('messages behind a large one', () => {
  it('wait for it: of two calls with one id the later is refused', async () => {
    const first = socket.call('large', { text: large }, 1)
    socket.send({ jsonrpc: '2.0', id: 1, method: 'slow' })
    expect(await socket.next()).toMatchObject({ id: null, error: { data: { detail: 'duplicate_id' } } })
    expect(await first).toMatchObject({ id: 1, result: large.length })
    expect(gates).toHaveLength(0)
  })

  it('are looked at in the order in which they came', async () => {
    const ids = Array.from({ length: 12 }, (_, i) => i)
    for (const id of ids) socket.send({ id, pad: id % 4 === 0 ? large : '' })
    const answers = []
    for (const _ of ids) answers.push((await socket.next()).id)
    expect(answers).toEqual(ids)
  })
})

describe('cancel', () => {
  it('drops a call whose handler has not started; its id is free again', async () => {
    await other.begin('lock table auth_session in access exclusive mode')
    const waiting = socket.call('slow', {}, 'x')
    await other.blocks(1)
    cancel('x')
    expect(await waiting).toMatchObject({
      id: 'x',
      error: { code: -32010, data: { reason: 'request_cancelled' } },
    })
    const again = socket.call('fast', {}, 'x')
    await other.commit()
    expect(await again).toMatchObject({ id: 'x', result: 'done' })
    expect(gates).toHaveLength(0)
    expect(socket.waiting).toEqual([])
  })

  it('lets calls that run or were answered, and those of other sockets, keep their replies', async () => {
    const elsewhere = await openSocket(test.url, { cookie: ada.cookie })
    const calls = [
      socket.call('slow', {}, 1),
      socket.call('slow_write', {}, 'w'),
      elsewhere.call('slow', {}, 9),
    ]
    await entered(3)
    expect(outcomeOf(await socket.call('fast', {}, 'over'))).toBe('ok')
    for (const id of [1, 'w', 9, 'over', '1', null, {}, 1.5]) cancel(id)
    expect(outcomeOf(await socket.call('heartbeat', {}, 'beat'))).toBe('ok')
    openGates()
    expect((await Promise.all(calls)).map(outcomeOf)).toEqual(['ok', 'ok', 'ok'])
    expect(socket.waiting).toEqual([])
    await elsewhere.close()
  })

  it('finds a large call that was sent right before it', async () => {
    await other.begin('lock table auth_session in access exclusive mode')
    const waiting = socket.call('large', { text: large }, 'x')
    cancel('x')
    expect(outcomeOf(await waiting)).toBe('-32010 request_cancelled')
    await other.commit()
  })

  it('with an id is a call of a method that does not exist', async () => {
    expect(outcomeOf(await socket.call('cancel', { request_id: 1 }))).toBe('-32601 method_not_found')
  })
})

describe('a socket whose client leaves', () => {
  it('does not interrupt a mutation that has begun', async () => {
    const { client } = await test.account()
    socket.send({ jsonrpc: '2.0', id: 1, method: 'slow_write' })
    await entered(1)
    socket.ws.terminate()
    await socket.closed
    await test.service.app.db.run(sql`update account set updated_at = '2001-01-01' where username = 'ada'`)
    openGates()
    for (;;) {
      await client.account_verify()
      const row = await test.service.app.db.first<{ changed: boolean }>(sql`
        select updated_at > '2002-01-01' as changed from account where username = 'ada'`)
      if (row?.changed) break
    }
  })
})

describe('a call that notifies its own account', () => {
  it('is answered before its own socket hears of it; the others hear at once', async () => {
    const same = await openSocket(test.url, { cookie: ada.cookie })
    expect(outcomeOf(await socket.call('tell_me'))).toBe('ok')
    const told = {
      jsonrpc: '2.0',
      method: 'role_grant_revoke',
      params: { role_grant_id: '11111111-1111-1111-1111-111111111111', role: 'editor', scope_id: null },
    }
    expect(await socket.next()).toEqual(told)
    expect(await same.next()).toEqual(told)
    expect(socket.order).toEqual(['reply', 'role_grant_revoke'])
    await same.close()
  })
})

describe('a call that ends its own credential', () => {
  it('is answered first, then its socket closes, and the others of the account', async () => {
    const eve = await test.account()
    const own = await openSocket(test.url, { cookie: eve.cookie })
    const same = await openSocket(test.url, { cookie: eve.cookie })
    expect(outcomeOf(await own.call('account_session_revoke_all'))).toBe('ok')
    expect(await own.closed).toEqual({ code: 4001, reason: 'revoked' })
    expect(await same.closed).toEqual({ code: 4001, reason: 'revoked' })
    expect(own.order).toEqual(['reply', 4001])
  })

  it('is answered first also where a later message has found the credential gone', async () => {
    const eve = await test.account()
    const own = await openSocket(test.url, { cookie: eve.cookie })
    const slow = own.call('slow')
    await entered(1)
    await test.service.app.db.run(sql`delete from auth_session where account_id = ${eve.id}::uuid`)
    expect(outcomeOf(await own.call('fast'))).toBe('-32001 authentication_required')
    openGates()
    expect(outcomeOf(await slow)).toBe('ok')
    expect(await own.closed).toEqual({ code: 4001, reason: 'revoked' })
  })
})
