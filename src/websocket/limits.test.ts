import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { WebSocket } from 'ws'
import { z } from 'zod'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { openSocket, outcomeOf, type TestSocket } from '../../test/helpers/sockets.ts'
import { query } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { testService } from '../testing/index.ts'

const mebibyte = 1_048_576
let underWay = { now: 0, most: 0 }
let release = Promise.withResolvers<void>()
const actions = {
  held: query({
    doc: 'Waits until the test lets it go.',
    auth: { account: 'required', actor: 'none' },
    input: z.strictObject({ text: z.string() }),
    output: z.int(),
    async handler({ text }) {
      underWay.now += 1
      underWay.most = Math.max(underWay.most, underWay.now)
      await release.promise
      underWay.now -= 1
      return text.length
    },
  }),
  size: query({
    doc: 'The length of a text.',
    auth: { account: 'required', actor: 'none' },
    input: z.strictObject({ text: z.string() }),
    output: z.int(),
    handler: async ({ text }) => text.length,
  }),
  big: query({
    doc: 'A megabyte.',
    auth: { account: 'required', actor: 'none' },
    output: z.string(),
    handler: async () => 'x'.repeat(mebibyte),
  }),
}

// Only the intervals of pings and checks are faked; everything else uses the clock.
vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
const captured = capturedLog()
const test = await testService({ actions, ws_per_account: 3, log: captured.log })
const ada = await test.account()
afterAll(async () => {
  vi.useRealTimers()
  await test.close()
})

const sockets: TestSocket[] = []
const open = async (account = ada): Promise<TestSocket> => {
  const socket = await openSocket(test.url, { cookie: account.cookie })
  sockets.push(socket)
  return socket
}
afterEach(() => {
  for (const { ws } of sockets.splice(0)) ws.terminate()
})

/** A call of this many bytes in total. */
const messageOf = (bytes: number): string => {
  const text = (length: number) =>
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'size', params: { text: 'x'.repeat(length) } })
  return text(bytes - text(0).length)
}
const inPieces = (socket: TestSocket, message: string): void => {
  const piece = 300_000
  for (let at = 0; at < message.length; at += piece)
    socket.ws.send(message.slice(at, at + piece), { fin: at + piece >= message.length })
}

describe('a message', () => {
  it('of a mebibyte is read, whole or in fragments', async () => {
    const socket = await open()
    socket.send(messageOf(mebibyte))
    expect(outcomeOf(await socket.next())).toBe('ok')
    inPieces(socket, messageOf(mebibyte))
    expect(outcomeOf(await socket.next())).toBe('ok')
  })

  it('of one byte more closes the socket with 1009', async () => {
    const [whole, pieces] = [await open(), await open()]
    whole.send(messageOf(mebibyte + 1))
    inPieces(pieces, messageOf(mebibyte + 1))
    expect((await whole.closed).code).toBe(1009)
    expect((await pieces.closed).code).toBe(1009)
  })
})

describe('large calls', () => {
  it('in flight are 1 MiB and one more; the others are read when there is room', async () => {
    const [socket, other] = [await open(), await open()]
    underWay = { now: 0, most: 0 }
    release = Promise.withResolvers()
    const text = 'x'.repeat(600_000)
    const calls = [1, 2, 3, 4, 5].map(() => socket.call('held', { text }))
    while (underWay.now < 2 || other.order.length < 30)
      expect(outcomeOf(await other.call('account_verify'))).toBe('ok')
    release.resolve()
    expect((await Promise.all(calls)).map(outcomeOf)).toEqual(Array(5).fill('ok'))
    expect(underWay.most).toBe(2)
  })
})

describe('a client that does not read', () => {
  it('is closed with 1013; no more than 8 MiB and the message behind wait for it', async () => {
    const socket = await open()
    const waiting = vi.spyOn(WebSocket.prototype, 'bufferedAmount', 'get')
    socket.ws.pause()
    for (let id = 0; id < 60; id++) socket.send({ jsonrpc: '2.0', id, method: 'big' })
    const other = await open()
    while (!waiting.mock.results.some(({ value }) => value > 8 * mebibyte))
      expect(outcomeOf(await other.call('account_verify'))).toBe('ok')
    socket.ws.resume()
    expect(await socket.closed).toEqual({ code: 1013, reason: 'slow consumer' })
    expect(Math.max(...waiting.mock.results.map(({ value }) => value))).toBeLessThan(9.5 * mebibyte)
    waiting.mockRestore()
  })
})

describe('sockets of one account', () => {
  it('beyond the cap push out the oldest with 4004, on its node and of its account alone', async () => {
    const [eve, bob] = [await test.account(), await test.account()]
    const foreign = await open(bob)
    const three = [await open(eve), await open(eve), await open(eve)]
    const fourth = await open(eve)
    expect(await three[0]?.closed).toEqual({ code: 4004, reason: 'too many sockets' })
    for (const socket of [...three.slice(1), fourth, foreign])
      expect(outcomeOf(await socket.call('account_verify'))).toBe('ok')
    await fourth.close()
    const fifth = await open(eve)
    for (const socket of [...three.slice(1), fifth])
      expect(outcomeOf(await socket.call('account_verify'))).toBe('ok')
  })
})

it('the only socket that an account may have hears of the end of its session', async () => {
  await using single = await testService({ database_url: test.databaseUrl, ws_per_account: 1 })
  const { cookie, client } = await single.account({ username: 'single' })
  const first = await openSocket(single.url, { cookie })
  const second = await openSocket(single.url, { cookie })
  expect((await first.closed).code).toBe(4004)
  await client.account_session_revoke_all()
  expect((await second.closed).code).toBe(4001)
})

describe('silence', () => {
  it('for two ping intervals closes with 4003; a pong, or any message, breaks it', async () => {
    const [silent, alive] = [await open(), await open()]
    // By default, the client library answers pings itself.
    silent.ws.pause()
    const pinged = (): Promise<unknown> => new Promise((resolve) => alive.ws.once('ping', resolve))
    for (let rounds = 0; rounds < 4; rounds++) {
      const ping = pinged()
      vi.advanceTimersByTime(30_000)
      await ping
      expect(outcomeOf(await alive.call('heartbeat'))).toBe('ok')
    }
    silent.ws.resume()
    expect(await silent.closed).toEqual({ code: 4003, reason: 'heartbeat timeout' })
    expect(outcomeOf(await alive.call('account_verify'))).toBe('ok')
  })

  it('is in the log with 4003, even if the client never answers the close frame', async () => {
    const eve = await test.account()
    const [silent, leaver] = [await open(eve), await open(eve)]
    leaver.ws.close(4321)
    await leaver.closed
    silent.ws.pause()
    vi.advanceTimersByTime(90_000)
    silent.ws.terminate()
    const codes = () =>
      captured
        .lines()
        .flatMap(({ msg, account_id, code }) =>
          msg === 'socket closed' && account_id === eve.id ? [code] : [],
        )
    await expect.poll(codes, { timeout: 30_000 }).toEqual([4321, 4003])
  })
})

describe('the regular check, for lost signals', () => {
  it('closes within 30 s what no signal has closed', async () => {
    const eve = await test.account()
    const socket = await open(eve)
    const other = await open()
    const { db } = test.service.app
    await db.run(sql`delete from auth_session where account_id = ${eve.id}::uuid`)
    vi.advanceTimersByTime(30_000)
    expect(await socket.closed).toEqual({ code: 4001, reason: 'revoked' })
    expect(outcomeOf(await other.call('account_verify'))).toBe('ok')
  })

  it('is not needed for a refusal: the next message finds the credential gone', async () => {
    const eve = await test.account()
    const socket = await open(eve)
    expect(outcomeOf(await socket.call('account_verify'))).toBe('ok')
    await test.service.app.db.run(sql`delete from auth_session where account_id = ${eve.id}::uuid`)
    expect(outcomeOf(await socket.call('cell_list'))).toBe('-32001 authentication_required')
    expect(await socket.closed).toEqual({ code: 4001, reason: 'revoked' })
  })
})
