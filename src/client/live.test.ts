import { randomUUID } from 'node:crypto'
import { getEventListeners, once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket as NetSocket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, expectTypeOf, it, vi } from 'vitest'
import { WebSocket } from 'ws'
import { tokenOf } from '../../test/helpers/callers.ts'
import { page, reverseProxy } from '../../test/helpers/reverse-proxy.ts'
import type { Actions } from '../actions.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'
import { createClient } from './client.ts'
import { createLive, type LiveClient, type LiveEvents, type LiveOptions } from './live.ts'
import { endingOf, waitOf } from './live-retry.ts'

let test: TestService
let ada: TestAccount
beforeAll(async () => {
  test = await testService()
  ada = await test.account()
})
afterAll(() => test.close())

const made: LiveClient[] = []
afterEach(() => {
  for (const live of made.splice(0)) live.close()
})
const liveOf = (options: Partial<LiveOptions> = {}): LiveClient => {
  const live = createLive({ url: test.url, headers: { cookie: ada.cookie }, ...options })
  made.push(live)
  return live
}
const event = <E extends keyof LiveEvents>(live: LiveClient, name: E): Promise<LiveEvents[E]> =>
  new Promise((resolve) => {
    const off = live.on(name, (params) => {
      off()
      resolve(params)
    })
  })

describe('a live client', () => {
  it.each([
    ['the global WebSocket of Node', undefined],
    ['the class of ws', WebSocket as never],
  ])('calls methods with %s, and hears refusals as the client does', async (_name, Class) => {
    const live = liveOf(Class && { WebSocket: Class })
    const { cell } = await live.cell_create({ data: { of: 'live' } })
    expect(await live.cell_get({ id: cell.id })).toMatchObject({ cell: { data: { of: 'live' } } })
    await expect(live.cell_get({ id: ada.id })).rejects.toMatchObject({ reason: 'cell_not_found' })
    const outcome = await live.try.cell_get({ id: ada.id })
    expect(outcome).toMatchObject({ ok: false, error: { reason: 'cell_not_found' } })
    expect(await Promise.all([live.account_verify(), live.account_session_list()])).toMatchObject([
      { id: ada.id },
      { sessions: [{}] },
    ])
  })

  it('carries a token in Node, and a default actor', async () => {
    const eve = await test.account()
    const second = await test.actor(eve.id, 'second')
    const { headers } = await tokenOf(test, eve)
    const live = liveOf({ headers, acting: second })
    expect((await live.cell_create({ data: {} })).cell.created_by).toBe(second)
  })

  it('hears the notifications of its account, typed', async () => {
    const live = liveOf()
    await event(live, 'open')
    const heard = event(live, 'role_grant_revoke')
    expectTypeOf(heard).resolves.toHaveProperty('role_grant_id').toEqualTypeOf<string>()
    const other = await test.account()
    const granted = await test.roleGrant({ actor_id: ada.actor_id, role: 'admin' })
    await test.roleGrant({ actor_id: other.actor_id, role: 'admin' })
    await test.service.operations.revokeRoleEverywhere(
      { actor_id: ada.actor_id, role: 'admin' },
      { via: 'test' },
    )
    expect(await heard).toEqual({ role_grant_id: granted.role_grant_id, role: 'admin', scope_id: null })
  })

  it('is over when its credential ends, or if there never was one', async () => {
    const eve = await test.account()
    const live = liveOf({ headers: { cookie: eve.cookie } })
    await live.account_verify()
    const closed = event(live, 'closed')
    await live.account_session_revoke_all()
    expect(await closed).toBe('signed_out')
    await expect(live.account_verify()).rejects.toMatchObject({ reason: 'not_connected' })

    const anonymous = liveOf({ headers: {} })
    expect(await event(anonymous, 'closed')).toBe('signed_out')
  })

  it('listens to its page no longer than until it is over', async () => {
    const page = new EventTarget()
    vi.stubGlobal('addEventListener', page.addEventListener.bind(page))
    vi.stubGlobal('removeEventListener', page.removeEventListener.bind(page))
    try {
      const live = liveOf({ headers: {} })
      expect(getEventListeners(page, 'online')).toHaveLength(1)
      await event(live, 'closed')
      expect(getEventListeners(page, 'online')).toHaveLength(0)
    } finally {
      vi.unstubAllGlobals()
    }
  })

  it('takes over the session or the token of a client, and its base URL', async () => {
    const signedIn = createClient({ url: `${test.url}/`, jar: true })
    await signedIn.account.login({ username: ada.username, password: ada.password })
    const { token } = await tokenOf(test, ada, { kind: 'methods', methods: ['account_verify'] })
    for (const client of [signedIn, createClient({ url: test.url, token })])
      for (const Class of [undefined, WebSocket as never]) {
        const live = createLive(client, { WebSocket: Class })
        made.push(live)
        expect(await live.account_verify()).toMatchObject({ id: ada.id })
      }
    expect(await liveOf({ headers: {}, token }).account_verify()).toMatchObject({ id: ada.id })
    // The methods of the client are those of its live client.
    type Own = { account_verify: Actions['account_verify'] }
    const own = createLive(createClient<Own>({ url: test.url, token }))
    made.push(own as never)
    expectTypeOf(own).toHaveProperty('account_verify')
    expectTypeOf(own).not.toHaveProperty('cell_get')
    await expect(liveOf({ headers: {}, token }).cell_list()).rejects.toThrow(
      /^cell_list: token_scope_required$/,
    )
  })

  it('works without headers if the WebSocket takes none, as in browsers', async () => {
    class Strict extends globalThis.WebSocket {
      constructor(url: string, options?: unknown) {
        if (options !== undefined) throw new SyntaxError('[object Object] is no subprotocol')
        super(url)
      }
    }
    const live = liveOf({ WebSocket: Strict as never })
    expect(await event(live, 'lost')).toMatchObject({ code: 1006 })
  })

  it.each<[string, Partial<LiveOptions> & { origin?: string }, string]>([
    ['an actor of another account', { acting: randomUUID() }, 'actor_not_on_account'],
    ['a path without a socket', { wsPath: '/api/nowhere' }, 'not_found'],
    ['an origin that is not allowed', { origin: 'https://evil.example' }, 'forbidden_origin'],
  ])(
    'is over with the reason if the service refuses it: %s',
    async (_name, { origin, ...options }, reason) => {
      const live = liveOf({ ...options, ...(origin && { headers: { cookie: ada.cookie, origin } }) })
      expect(await event(live, 'closed')).toBe(reason)
      await expect(live.account_verify()).rejects.toMatchObject({ data: { ending: reason } })
    },
  )

  it('tries again if a proxy refuses it, which says nothing about the credential', async () => {
    const { url, answer } = await reverseProxy(test.url)
    answer(page(403, 'Forbidden'), page(401, '{"error":"Log in to the proxy"}'))
    expect(await event(liveOf({ url }), 'lost')).toMatchObject({ code: 1006 })
  })

  it('tries again if its WebSocket reports a failure only by an error, as that of Node 22 does', async () => {
    class Failing {
      onerror: () => void = () => {}
      constructor() {
        setTimeout(() => this.onerror())
      }
      close() {
        this.onerror()
      }
    }
    const live = liveOf({ WebSocket: Failing as never })
    expect(await event(live, 'lost')).toMatchObject({ code: 1006 })
    expect(await event(live, 'lost')).toMatchObject({ code: 1006 })
  })

  it('gives up a connection that neither opens nor fails, and tries again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      let [opened, closed] = [0, 0]
      class Silent {
        constructor() {
          opened += 1
        }
        close() {
          closed += 1
        }
      }
      const live = liveOf({
        WebSocket: Silent as never,
        fetch: () => Promise.reject(new Error('unreachable')),
      })
      const lost = event(live, 'lost')
      await vi.advanceTimersByTimeAsync(24_000)
      expect([opened, closed]).toEqual([1, 0])
      await vi.advanceTimersByTimeAsync(1_000)
      const { code, wait_ms } = await lost
      expect([opened, closed, code]).toEqual([1, 1, 4000])
      await vi.advanceTimersByTimeAsync(wait_ms)
      expect([opened, closed]).toEqual([2, 1])
    } finally {
      vi.useRealTimers()
    }
  })

  it('comes back after another credential of its account was revoked', async () => {
    const eve = await test.account()
    const token = await tokenOf(test, eve)
    const live = liveOf({ headers: { cookie: eve.cookie } })
    await live.account_verify()
    const lost = event(live, 'lost')
    await eve.client.account_token_revoke({ token_id: token.id })
    const { code, wait_ms } = await lost
    expect(code).toBe(4006)
    expect(wait_ms).toBeLessThanOrEqual(1000)
    expect(await event(live, 'open')).toEqual({ again: true })
    expect(await live.account_verify()).toMatchObject({ id: eve.id })
  })

  it('rejects what it calls when it is closed, and closes once', async () => {
    const live = liveOf()
    await event(live, 'open')
    const call = live.try.account_verify()
    live.close()
    live.close()
    expect(await call).toMatchObject({ ok: false, error: { reason: 'connection_lost' } })
    expect(await live.try.account_verify()).toMatchObject({ ok: false, error: { reason: 'not_connected' } })
  })
})

/** A proxy to the service that the test can cut and restore. */
async function line() {
  const { port } = new URL(test.url)
  const ends = new Set<NetSocket>()
  let isUp = true
  const server: Server = createServer()
  server.removeAllListeners('connection')
  server.on('connection', (near: NetSocket) => {
    near.on('error', () => {})
    if (!isUp) return near.destroy()
    const far = connect(Number(port), '127.0.0.1')
    far.on('error', () => {})
    ends.add(near)
    near.pipe(far).pipe(near)
    near.once('close', () => far.destroy())
    far.once('close', () => near.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut: () => {
      isUp = false
      for (const end of ends) end.destroy()
    },
    mend: () => {
      isUp = true
    },
    close: () => void server.close(),
  }
}

describe('a line that breaks', () => {
  it('rejects the calls under way, sends none of them again, and later calls wait for the next connection', async () => {
    const wire = await line()
    const live = liveOf({ url: wire.url })
    await live.account_verify()
    const lost = event(live, 'lost')
    // What is sent after the cut never arrives, and must not be sent again.
    wire.cut()
    const calls = await Promise.all([live.try.cell_create({ data: { at: 'the cut' } })])
    expect(calls).toMatchObject([{ ok: false, error: { reason: 'connection_lost' } }])
    expect((await lost).wait_ms).toBeGreaterThan(0)
    const waiting = live.account_verify()
    wire.mend()
    expect(await waiting).toMatchObject({ id: ada.id })
    expect((await ada.client.cell_list()).cells.filter(({ data }) => 'at' in (data as object))).toEqual([])
    wire.close()
  })

  it('is waited for without end if the patience has none', async () => {
    const live = liveOf({ patienceMs: Number.POSITIVE_INFINITY })
    expect(await live.try.account_verify()).toMatchObject({ ok: true })
  })

  it('that does not come back rejects a call after its patience, unsent', async () => {
    const wire = await line()
    wire.cut()
    const live = liveOf({ url: wire.url, patienceMs: 50 })
    expect(await live.try.account_verify()).toMatchObject({ ok: false, error: { reason: 'not_connected' } })
    wire.close()
  })
})

describe('the way back', () => {
  it('is closed after 4001, 4004 and 4005, at once after 4006, with jitter and growing waits otherwise', () => {
    const first = { failures: 0 }
    expect([4001, 4004, 4005].map(endingOf)).toEqual(['signed_out', 'too_many_sockets', 'signed_out'])
    for (const code of [1001, 1006, 1009, 1011, 1013, 4003, 4006]) {
      expect(endingOf(code)).toBeUndefined()
      const waits = Array.from({ length: 50 }, () => waitOf(code, first))
      expect(new Set(waits).size).toBeGreaterThan(25)
      const longest = Math.max(...waits)
      expect(longest).toBeLessThanOrEqual(code === 4006 ? 1_000 : 3_000)
      // Thousands may have lost the same node.
      expect(longest - Math.min(...waits)).toBeGreaterThan(code === 4006 ? 300 : 1_500)
      const late = waitOf(code, { failures: 20 })
      expect(late).toBeGreaterThanOrEqual(15_000)
      expect(late).toBeLessThanOrEqual(30_000)
    }
  })
})
