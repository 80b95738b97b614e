import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { call, dataOf, open, reasonOf, rpc, send, statuses, untilClosed } from '../../test/helpers/http.ts'
import { mutation, query } from '../core/declare.ts'
import type { Service } from '../service.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'
import { unsent } from './unsent.ts'

const mebibyte = 1_048_576
let hits = 0
let held: (() => void)[] = []
let turns = new Map<number, number>()
const auth = { account: 'none', actor: 'none' } as const
const actions = {
  begun: query({
    doc: 'Takes two milliseconds, and counts how many calls began in the same turn of the event loop.',
    auth: { account: 'required', actor: 'none' },
    output: z.null(),
    handler: async () => {
      turns.set(turn, (turns.get(turn) ?? 0) + 1)
      for (const end = performance.now() + 2; performance.now() < end; );
      return null
    },
  }),
  counted: query({
    doc: 'Counts how many calls came in the same turn of the event loop.',
    auth,
    output: z.null(),
    handler: async () => {
      turns.set(turn, (turns.get(turn) ?? 0) + 1)
      return null
    },
  }),
  held: query({
    doc: 'Waits until the test lets it go.',
    auth,
    output: z.int(),
    handler: async () => {
      await new Promise<void>((resolve) => held.push(resolve))
      return ++hits
    },
  }),
  big: query({
    doc: 'Answers as many MiB as are asked for.',
    auth,
    input: z.strictObject({ size: z.number() }),
    output: z.string(),
    handler: async ({ size }) => {
      hits += 1
      return 'x'.repeat(size * mebibyte)
    },
  }),
  bigger: mutation({
    doc: 'Does something, and answers 4 MiB.',
    auth: { account: 'required', actor: 'required' },
    event: 'cell_update',
    output: z.string(),
    handler: async () => 'x'.repeat(4 * mebibyte),
  }),
}

/** Counts the turns of the event loop while a test runs. */
let turn = 0
async function countTurns(isOver: () => boolean): Promise<void> {
  for (; !isOver(); turn++) await nextTurn()
}

let test: TestService
/** Cuts clients that read nothing for two seconds, which would be too soon for the other tests on a busy machine. */
let impatient: TestService
let ada: TestAccount
beforeAll(async () => {
  const sizes = { unsent_max: 32 * mebibyte, arriving_max: 16 * mebibyte }
  test = await testService({ actions, ...sizes, answer_stall_ms: 60_000 })
  impatient = await testService({
    ...{ actions, ...sizes, answer_stall_ms: 2_000, audit_stream: true },
    database_url: test.databaseUrl,
  })
  ada = await test.account({ roles: ['admin'] })
})
afterAll(async () => {
  await impatient.close()
  await test.close()
})
beforeEach(() => {
  hits = 0
  held = []
})

const get = (method: string, params = {}) =>
  `GET /api/rpc?method=${method}&id=1&params=${encodeURIComponent(JSON.stringify(params))} HTTP/1.1\r\nHost: x\r\n\r\n`
const big = (size: number) => get('big', { size })

/** A client that sends a request and reads nothing. */
async function unreading(text: string, { url } = test): Promise<Socket> {
  const socket = await open(url)
  socket.pause().write(text)
  return socket
}

/** Clients that take up almost three quarters of the room, so that none is cut to make more. */
async function underThreeQuarters(): Promise<Socket[]> {
  await expect.poll(() => unsent.bytes).toBe(0)
  const sockets = await Promise.all([unreading(big(11)), unreading(big(12))])
  await expect.poll(() => unsent.bytes).toBeGreaterThan(23 * mebibyte)
  return sockets
}

/** Resolves when the server has cut the connection; a client that does not read notices only by writing. */
function cut(socket: Socket): Promise<unknown> {
  const touch = setInterval(() => socket.write('\r\n'), 50)
  return new Promise((resolve) => socket.once('close', resolve)).finally(() => clearInterval(touch))
}

it('large inputs that take long to parse leave the others most of the time', async () => {
  // As long on every machine.
  const parse = JSON.parse
  const spied = vi.spyOn(JSON, 'parse').mockImplementation((text: string) => {
    for (const end = performance.now() + 100; text.length > 500_000 && performance.now() < end; );
    return parse(text)
  })
  onTestFinished(() => spied.mockRestore())
  const body = JSON.stringify({ text: 'x'.repeat(1_000_000) })
  const answers: ('large' | 'small')[] = []
  const large = Array.from({ length: 2 }, async () => {
    expect((await rpc(test.url, body)).status).toBe(400)
    answers.push('large')
  })
  const isLarge = (answer: string): boolean => answer === 'large'
  while (answers.filter(isLarge).length < large.length) {
    await rpc(test.url, call('counted'))
    answers.push('small')
  }
  await Promise.all(large)
  const between = answers.slice(answers.indexOf('large'), answers.lastIndexOf('large'))
  expect(between.filter((answer) => answer === 'small').length).toBeGreaterThan(10)
})

describe('requests of one connection', () => {
  it('begin 12 at a time, in their order, and all are answered', async () => {
    const socket = await open(test.url)
    const closed = untilClosed(socket)
    const count = 500
    socket.write(get('held').repeat(count - 1))
    socket.write(get('held').replace('Host: x', 'Host: x\r\nConnection: close'))
    const seen: number[] = []
    while (hits < count) {
      await expect.poll(() => held.length).toBe(Math.min(12, count - hits))
      // Any further request would have begun by the time another client gets its answer.
      expect((await send(test.url, { path: '/health' })).status).toBe(200)
      seen.push(held.length)
      for (const release of held.splice(0)) release()
      await expect.poll(() => hits).toBe(seen.reduce((a, b) => a + b))
    }
    expect(Math.max(...seen)).toBe(12)
    expect(statuses(await closed)).toEqual(Array(count).fill(200))
  })

  it('that need no database do not begin in one turn, so that others are answered in between', async () => {
    turns = new Map()
    const count = 500
    const socket = await open(test.url)
    const closed = untilClosed(socket)
    const counting = countTurns(() => socket.closed)
    socket.write(get('counted').repeat(count - 1))
    socket.write(get('counted').replace('Host: x', 'Host: x\r\nConnection: close'))
    expect(statuses(await closed)).toEqual(Array(count).fill(200))
    await counting
    expect([...turns.values()].reduce((a, b) => a + b)).toBe(count)
    // The first begin when they arrive, the next 12 perhaps in the same turn.
    expect(Math.max(...turns.values())).toBeLessThanOrEqual(24)
  })

  it('are not begun once an answer before them finds it closed', async () => {
    const socket = await open(test.url)
    socket.write(get('held').repeat(24))
    await expect.poll(() => held.length).toBe(12)
    const answered = async (some: (() => void)[]): Promise<void> => {
      for (const release of some) release()
      for (let n = 0; n < 100; n++) await new Promise((resolve) => process.nextTick(resolve))
    }
    // All in one turn: the followers of the first would have theirs in the next one.
    await answered(held.splice(0, 1))
    socket.resetAndDestroy()
    await answered(held.splice(0))
    expect((await send(test.url, { path: '/health' })).status).toBe(200)
    expect([hits, held.length]).toEqual([12, 0])
  })

  it('are not begun while it leaves more than a mebibyte unread', async () => {
    const socket = await unreading(big(8), impatient)
    await expect.poll(() => hits).toBe(1)
    await expect.poll(() => unsent.bytes).toBeGreaterThan(8 * mebibyte)
    socket.write(big(0).repeat(40))
    await cut(socket)
    expect(hits).toBe(1)
  })
})

describe('an answer that is not read', () => {
  it('ends its connection when its client takes nothing for the time set', async () => {
    const socket = await unreading(big(8), impatient)
    await cut(socket)
    await expect.poll(() => unsent.bytes).toBe(0)
  })

  it('does not if its client reads slowly', async () => {
    const socket = await open(impatient.url)
    socket.write(big(12))
    let received = 0
    const begun = performance.now()
    while (received < 12 * mebibyte) {
      const chunk: Buffer | null = socket.read()
      received += chunk?.length ?? 0
      expect(socket.destroyed).toBe(false)
      await new Promise((resolve) => setTimeout(resolve, 15))
    }
    // Longer than the stall limit, or this test would prove nothing.
    expect(performance.now() - begun).toBeGreaterThan(2_000)
    socket.destroy()
  })

  it('takes no more room than is set: large answers of reads are refused, others given', async () => {
    const sockets = await underThreeQuarters()
    const refused = await rpc(test.url, call('big', { size: 10 }))
    expect([refused.status, dataOf(refused)]).toEqual([503, { reason: 'busy', retry_after: 1 }])
    expect(refused.headers['retry-after']).toBe('1')
    expect(reasonOf(await rpc(test.url, call('big', { size: 0.01 })))).toBe('ok')
    const done = await rpc(test.url, call('bigger'), { cookie: ada.cookie })
    expect(done.status).toBe(200)
    for (const socket of sockets) socket.destroy()
    await expect.poll(async () => reasonOf(await rpc(test.url, call('big', { size: 10 })))).toBe('ok')
  })

  it('is cut after a second to make room', async () => {
    const sockets = await Promise.all([unreading(big(14)), unreading(big(15))])
    await Promise.any(sockets.map(cut))
    await expect.poll(async () => reasonOf(await rpc(test.url, call('big', { size: 4 })))).toBe('ok')
    for (const socket of sockets) socket.destroy()
  })
})

describe('an audit stream', () => {
  const stream = () => `GET /api/account/audit/stream HTTP/1.1\r\nHost: x\r\nCookie: ${ada.cookie}\r\n\r\n`
  const streams = () => impatient.service.app.hub.count().streams

  it('does not keep an answer before it that is not read', async () => {
    const socket = await unreading(big(8) + stream(), impatient)
    await expect.poll(streams).toBe(1)
    await cut(socket)
    await expect.poll(() => [unsent.bytes, streams()]).toEqual([0, 0])
  })

  it('ends with its connection when a request comes behind it, whose answer it would hold', async () => {
    const socket = await open(impatient.url)
    const closed = untilClosed(socket)
    socket.write(stream())
    await once(socket, 'data')
    socket.write(big(8))
    await closed
    expect(hits).toBe(0)
    await expect.poll(streams).toBe(0)
  })

  it('does not begin before a request that came with it', async () => {
    const socket = await open(impatient.url)
    const closed = untilClosed(socket)
    socket.write(stream() + big(8))
    expect(await closed).toBe('')
    await expect.poll(() => [unsent.bytes, streams()]).toEqual([0, 0])
  })
})

describe('a batch', () => {
  const replies = (json: unknown) => json as { id: unknown; result?: string; error?: { data: object } }[]

  it('begins no entry behind 16 MiB of answers', async () => {
    const entries = [
      ...Array.from({ length: 20 }, (_, id) => call('big', { size: 1 }, id)),
      { ...call('big'), jsonrpc: '1.0' },
    ]
    const info = { address: '127.0.0.1' }
    const request = new Request('http://x/api/rpc', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(entries),
    })
    const response = await test.service.fetch(request, info)
    const over = { code: -32600, data: { reason: 'batch_answer_too_large' } }
    for (const json of [(await rpc(test.url, entries)).json, await response.json()]) {
      const all = replies(json)
      expect(all.map(({ id }) => id)).toEqual([...Array(20).keys(), 1])
      expect(all.map(({ result }) => result?.length)).toEqual([
        ...Array(16).fill(mebibyte),
        ...Array(5).fill(undefined),
      ])
      expect(all.slice(16, 20).map(({ error }) => error)).toEqual(
        Array(4).fill(expect.objectContaining(over)),
      )
      expect(all[20]?.error?.data).toEqual({ reason: 'invalid_request', detail: 'version' })
    }
    expect(hits).toBe(32)
  })

  it('nor does it behind 16 MiB that found no room', async () => {
    const sockets = await underThreeQuarters()
    const entries = Array.from({ length: 8 }, (_, id) => call('big', { size: 10 }, id))
    const { json } = await rpc(test.url, entries)
    expect(replies(json).map(({ error }) => (error?.data as { reason?: string })?.reason)).toEqual([
      ...Array(2).fill('busy'),
      ...Array(6).fill('batch_answer_too_large'),
    ])
    expect(hits).toBe(4)
    for (const socket of sockets) socket.destroy()
    await expect.poll(() => unsent.bytes).toBe(0)
  })
})

describe('a body', () => {
  const limit = 65_536
  const padded = (size: number) => JSON.stringify(call('big', { size: 0 })).padEnd(size)
  /** Sends a body of this size without its first byte. */
  const begin = async (size: number) => {
    const socket = await open(test.url)
    const closed = untilClosed(socket)
    socket.write(
      `POST /api/rpc HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${size}\r\n\r\n${padded(size).slice(1)}`,
    )
    return { socket, closed }
  }

  it('may be as large without a credential as with a valid one, but not with an invalid one', async () => {
    const { token } = await ada.client.account_token_create({
      scope: { kind: 'full' },
      lifetime: { kind: 'eternal' },
    })
    const known = { authorization: `Bearer ${token}` }
    const stray = { authorization: `Bearer secret_svc_token_${'a'.repeat(43)}` }
    const told = async (isChunked: boolean, size: number, sent = {}, path = '/api/rpc') => {
      const headers = { 'content-type': 'application/json', ...sent }
      const body = isChunked ? new Blob([padded(size)]).stream() : padded(size)
      const init = { method: 'POST', headers, body, ...(isChunked && { duplex: 'half' }) } as RequestInit
      const response = await fetch(test.url + path, init)
      return [response.status, ((await response.json()) as { error?: string }).error]
    }
    for (const isChunked of [false, true]) {
      for (const sent of [{}, known]) {
        expect(await told(isChunked, mebibyte, sent)).toEqual([200, undefined])
        expect(await told(isChunked, mebibyte + 1, sent)).toEqual([413, 'payload_too_large'])
      }
      expect(await told(isChunked, limit, stray)).toEqual([200, undefined])
      expect(await told(isChunked, limit + 1, stray)).toEqual([401, 'authentication_required'])
      const login = '/api/account/login'
      expect(await told(isChunked, mebibyte, {}, login)).toEqual([400, 'invalid_request_body'])
      expect(await told(isChunked, mebibyte + 1, {}, login)).toEqual([413, 'payload_too_large'])
    }
  })

  it('meets the same limits when its request is handed to fetch', async () => {
    const told = async (size: number, headers = {}) => {
      const body = new Blob([padded(size)]).stream()
      const init = { method: 'POST', body, duplex: 'half' } as RequestInit
      const request = new Request('http://x/api/rpc', {
        ...init,
        headers: { 'content-type': 'application/json', ...headers },
      })
      return (await test.service.fetch(request, { address: '127.0.0.1' })).status
    }
    const stray = { authorization: `Bearer secret_svc_token_${'a'.repeat(43)}` }
    expect(await told(limit, stray)).toBe(200)
    expect(await told(limit + 1, stray)).toBe(401)
    for (const sent of [{}, { cookie: ada.cookie }]) {
      expect(await told(mebibyte, sent)).toBe(200)
      expect(await told(mebibyte + 1, sent)).toBe(413)
    }
  })

  it('that is large and anonymous waits behind four of its kind, of which an unfinished one gives way', async () => {
    const large = (): Promise<{ socket: Socket; closed: Promise<string> }> => begin(2 * limit)
    const unfinished = await Promise.all(Array.from({ length: 4 }, large))
    const ends = Promise.all(unfinished.map(({ closed }) => closed))
    // Nobody waits yet, and a body with a credential never does.
    const fromAda = await rpc(test.url, padded(mebibyte), { cookie: ada.cookie })
    expect(reasonOf(fromAda)).toBe('ok')
    expect(reasonOf(await rpc(test.url, padded(2 * limit)))).toBe('ok')
    for (const { socket } of unfinished) socket.write(' ')
    const answers = (await ends).map((received) => [statuses(received)[0], received.includes('"busy"')])
    expect(answers.sort()).toEqual([...Array(3).fill([400, false]), [503, true]])
  })

  it('that is large is handled in a turn of its own, so that others are answered in between', async () => {
    turns = new Map()
    let isOver = false
    const counting = countTurns(() => isOver)
    const text = JSON.stringify(call('counted')).padEnd(2 * limit)
    const sockets = await Promise.all(Array.from({ length: 4 }, () => open(test.url)))
    const head = `POST /api/rpc HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n`
    for (const socket of sockets) socket.write(head + text.slice(0, -1))
    // By then all bytes but the last have been read.
    const begun = turn
    await expect.poll(() => turn - begun).toBeGreaterThan(200)
    const answered = sockets.map((socket) => once(socket, 'data'))
    for (const socket of sockets) socket.write(' ')
    await Promise.all(answered)
    isOver = true
    await counting
    for (const socket of sockets) socket.destroy()
    expect([...turns.values()]).toEqual([1, 1, 1, 1])
  })

  it('that is still arriving gives way to younger ones, when together they are too many', async () => {
    const first = await begin(limit)
    const others = await Promise.all(Array.from({ length: 300 }, () => begin(limit)))
    const received = await first.closed
    expect(statuses(received)).toEqual([503])
    expect(received).toContain('{"error":"busy","retry_after":1}')
    const last = await begin(limit)
    last.socket.write(' ')
    // The body lacks its first byte and ends with an extra blank: not JSON, but it was read.
    expect(await last.closed).toContain('parse_error')
    for (const { socket } of others) socket.destroy()
  })
})

it('long calls whose credential was read together go on in turns, so that others are answered between them', async () => {
  turns = new Map()
  let isOver = false
  const counted = countTurns(() => isOver)
  const service = test.service as unknown as Service<typeof actions>
  const caller = { headers: { cookie: ada.cookie } }
  await Promise.all(Array.from({ length: 200 }, () => service.call('begun', {}, caller)))
  isOver = true
  await counted
  expect([...turns.values()].reduce((sum, one) => sum + one)).toBe(200)
  expect(Math.max(...turns.values())).toBeLessThanOrEqual(32)
})
