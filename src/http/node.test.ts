import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { call, exchange, open, send, statuses, untilClosed } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { query } from '../core/declare.ts'
import { testService } from '../testing/index.ts'
import { serve } from './listen.ts'
import { nodeListener } from './node.ts'

let hits = 0
let held: (() => void)[] = []
const actions = {
  hit: query({
    doc: 'Counts its calls.',
    auth: { account: 'none', actor: 'none' },
    output: z.int(),
    handler: async () => ++hits,
  }),
  held: query({
    doc: 'Waits until the test lets it go.',
    auth: { account: 'none', actor: 'none' },
    output: z.int(),
    handler: async () => {
      await new Promise<void>((resolve) => held.push(resolve))
      return ++hits
    },
  }),
}

const test = await serviceForFile({ actions, request_timeout_ms: 1000 })
afterEach(async () => {
  hits = 0
  held = []
  // Whatever one connection sent, the next one is served.
  expect((await send(test.url, { path: '/health' })).status).toBe(200)
})

const get = (path: string, ...headers: string[]) =>
  `${[`GET ${path} HTTP/1.1`, 'Host: x', ...headers].join('\r\n')}\r\n\r\n`
const post = (...headers: string[]) =>
  `${['POST /api/rpc HTTP/1.1', 'Host: x', 'Content-Type: application/json', ...headers].join('\r\n')}\r\n\r\n`
const hit = (method = 'hit') => get(`/api/rpc?method=${method}&id=1`)

/** The service behind a server that the test owns. */
async function ownServer() {
  const server = createServer(nodeListener(test.service.handle))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

describe('bytes that are no request', () => {
  it.each([
    ['headers of 64 KiB', get('/health', `X: ${'x'.repeat(65_536)}`), 431],
    ['a path of 64 KiB', get(`/${'x'.repeat(65_536)}`), 431],
    ['thousands of header lines', get('/health', ...Array(20_000).fill('a:')), 431],
    ['a bare CR in a header', get('/health', 'X-Daemon-Token: a\rb'), 400],
    ['a NUL in a header', get('/health', 'X: a\0b'), 400],
    ['a folded header', get('/health', 'X: a\r\n b'), 400],
    ['a space before the colon', get('/health', 'Content-Length : 1'), 400],
    ['a length and chunks', `${post('Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n`, 400],
    ['chunks and a length', `${post('Transfer-Encoding: chunked', 'Content-Length: 5')}0\r\n\r\n`, 400],
    ['two lengths', `${post('Content-Length: 1', 'Content-Length: 2')}xx`, 400],
    ['a length that is no number', post('Content-Length: abc'), 400],
    ['a negative length', post('Content-Length: -1'), 400],
    ['a length past 64 bits', post('Content-Length: 99999999999999999999'), 400],
    ['an unknown transfer coding', post('Transfer-Encoding: gzip'), 400],
    ['a chunk size that is no number', `${post('Transfer-Encoding: chunked')}zz\r\n`, 400],
    ['an unknown verb', 'BREW /health HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['HTTP/2 without a negotiation', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['a TLS greeting', Buffer.from([22, 3, 1, 0, 5, 1, 0, 0, 1, 0]), 400],
    ['coded chunks', `${post('Transfer-Encoding: gzip, chunked')}${'5\r\n{"a":\r\n'}0\r\n\r\n`, 400],
    ['chunks in HTTP/1.0', `${post('Transfer-Encoding: chunked').replace('/1.1', '/1.0')}0\r\n\r\n`, 400],
    ['no host', 'GET /health HTTP/1.1\r\n\r\n', 400],
    ['two hosts', get('/health', 'HOST: y'), 400],
    ['two hosts that are alike, in HTTP/1.0', 'GET /health HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n', 400],
    ['the version 2.0', 'GET /health HTTP/2.0\r\nHost: x\r\n\r\n', 400],
    ['no version', 'GET /health\r\n\r\n', 400],
    ['a tunnel', 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ])('%s: one answer, then the end of the connection', async (_what, bytes, status) => {
    const received = await exchange(test.url, bytes, hit())
    expect(statuses(received)).toEqual([status])
    expect(received).toMatch(/\r\nConnection: close\r\n/i)
    expect(received).toMatch(/\r\nX-Request-Id: [\w-]{36}\r\n/)
    expect(hits).toBe(0)
  })

  it.each([
    [1000, 200],
    [1001, 400],
  ])('%i headers, of which Node may ignore those behind the first thousand: %i', async (count, status) => {
    const { server, url } = await ownServer()
    // Newer Nodes would refuse them before the service does.
    server.maxHeadersCount = 0
    const bytes = get('/health', 'Connection: close', ...Array(count - 2).fill('a:'))
    expect(statuses(await exchange(url, bytes))).toEqual([status])
  })

  it('behind a request that is being answered do not take its answer', async () => {
    const socket = await open(test.url)
    const closed = untilClosed(socket)
    socket.write(`${hit('held')}${hit('held')}no request\r\n\r\n`)
    await expect.poll(() => held.length).toBe(2)
    for (const release of held) release()
    expect(statuses(await closed)).toEqual([200, 200, 400])
    expect(hits).toBe(2)
  })

  it('in a body end the request they belong to, behind the answers before it', async () => {
    const socket = await open(test.url)
    const closed = untilClosed(socket)
    socket.write(`${hit('held')}${post('Transfer-Encoding: chunked')}zz\r\n`)
    await expect.poll(() => held.length).toBe(1)
    for (const release of held) release()
    expect(statuses(await closed)).toEqual([200, 400])
  })

  it('a request that does not arrive in time is answered 408', async () => {
    const slow = ['GET /health HTTP/1.1\r\nHost: x\r\n', `${post('Content-Length: 10')}{`]
    const seen = await Promise.all(slow.map((bytes) => exchange(test.url, bytes)))
    expect(seen.map(statuses)).toEqual([[408], [408]])
  })
})

describe('behind an offer of another protocol that nobody takes', () => {
  const offering = (method: string) =>
    get(`/api/rpc?method=${method}&id=1`, 'Upgrade: h2c', 'Connection: Upgrade')

  it('no request is lost without a word: the connection ends with the answer', async () => {
    const received = await exchange(test.url, offering('hit'), hit())
    expect(statuses(received)).toEqual([200])
    expect(received).toMatch(/\r\nConnection: close\r\n/i)
    expect(hits).toBe(1)
  })

  it('the rest of a body is not taken for a request', async () => {
    const socket = await open(test.url)
    const closed = untilClosed(socket)
    socket.write(`${offering('held')}${post(`Content-Length: ${hit().length}`)}`)
    await expect.poll(() => held.length).toBe(1)
    socket.write(hit())
    // Once this is answered, the other bytes have been read too, as the server has one event loop.
    expect((await send(test.url, { path: '/health' })).status).toBe(200)
    held[0]?.()
    expect(statuses(await closed)).toEqual([200])
    expect(hits).toBe(1)
  })

  it('a body that breaks off is answered once its time is over', async () => {
    const request = post('Transfer-Encoding: chunked', 'Upgrade: h2c', 'Connection: Upgrade')
    expect(statuses(await exchange(test.url, `${request}5\r\n{`))).toEqual([408])
  })
})

describe('requests that are unusual and right', () => {
  const close = 'Connection: close'
  it.each([
    ['HTTP/1.0', 'GET /health HTTP/1.0\r\n\r\n', 200],
    ['an expectation other than 100-continue', get('/health', 'Expect: tea', close), 200],
    ['an upgrade that nobody takes', get('/health', 'Upgrade: websocket', 'Connection: upgrade, close'), 200],
    ['an upgrade on no path', get('/api/no', 'Upgrade: websocket', 'Connection: upgrade, close'), 404],
    ['OPTIONS *', `OPTIONS * HTTP/1.1\r\nHost: x\r\n${close}\r\n\r\n`, 404],
    ['an absolute target', get('http://x/health', close), 404],
    ['a body on GET', `${get('/health', 'Content-Length: 2', close)}xx`, 200],
    ['a length in two equal chunks', `${post('Transfer-Encoding: chunked', close)}0\r\n\r\n`, 400],
    ['latin-1 in a header', get('/health', 'X: \u00e9', close), 200],
  ])('%s', async (_what, bytes, status) => {
    expect(statuses(await exchange(test.url, Buffer.from(bytes, 'latin1')))).toEqual([status])
  })

  it('random credentials are refused or ignored, and never a failure', async () => {
    const random = [
      '\u00ff\u00fe',
      'a=b=c;;=;',
      '%00',
      'Bearer',
      'Bearer ',
      'Basic eDp5',
      `"${'x'.repeat(4000)}"`,
    ]
    for (const value of random)
      for (const name of ['Authorization', 'Cookie', 'X-Daemon-Token', 'Referer', 'Origin'])
        for (const sent of [value, `svc_session=${value}`]) {
          const bytes = Buffer.from(get('/api/account/status', `${name}: ${sent}`, close), 'latin1')
          const [status] = statuses(await exchange(test.url, bytes))
          expect([name, sent, status]).toEqual([name, sent, expect.toBeOneOf([400, 401, 403, 431])])
        }
  })
})

describe('a client that goes away', () => {
  /** So that the test can watch the connections. */
  async function watched() {
    const { server, url } = await ownServer()
    const accepted = once(server, 'connection')
    const client = await open(url)
    const [connection] = (await accepted) as [Socket]
    connection.on('error', () => {})
    const closed = new Promise((resolve) => connection.once('close', resolve))
    return { client, closed }
  }

  it('in the middle of a body leaves nothing behind', async () => {
    const { client, closed } = await watched()
    client.write(`${post('Content-Length: 100')}{"half":`)
    client.destroy()
    await closed
  })

  it('in the middle of an answer does not disturb the call', async () => {
    const { client, closed } = await watched()
    client.write(hit('held'))
    await expect.poll(() => held.length).toBe(1)
    client.destroy()
    await closed
    for (const release of held) release()
    await expect.poll(() => hits).toBe(1)
  })

  it('behind several requests does not hold up the stop', async () => {
    const own = await testService({ actions })
    onTestFinished(() => own.close())
    const serving = await serve(own.service)
    const client = await open(serving.url)
    client.write(hit('held').repeat(3))
    await expect.poll(() => held.length).toBe(3)
    client.resetAndDestroy()
    for (const release of held) release()
    expect(await serving.drain(AbortSignal.timeout(10_000))).toBe(true)
  })

  it('with a stream behind another answer leaves no stream behind', async () => {
    const own = await testService({ actions, audit_stream: true })
    onTestFinished(() => own.close())
    const { cookie } = await own.account({ roles: ['admin'] })
    const client = await open(own.url)
    client.write(`${hit('held')}${get('/api/account/audit/stream', `Cookie: ${cookie}`)}`)
    const streams = () => own.service.app.hub.count().streams
    await expect.poll(streams).toBe(1)
    await expect.poll(() => own.service.app.tally.running).toBe(1)
    client.resetAndDestroy()
    await expect.poll(streams).toBe(0)
    for (const release of held) release()
  })
})

describe('a client that ends its side after its requests', () => {
  const ending = async (...bytes: string[]) => {
    const socket = await open(test.url)
    const closed = untilClosed(socket)
    for (const part of bytes) socket.write(part)
    socket.end()
    return closed
  }

  it('gets every answer, and the connection ends behind the last one', async () => {
    const closed = ending(hit(), hit('held'), hit('held'), hit())
    await expect.poll(() => held.length).toBe(2)
    const second = ending(...Array(20).fill(hit('held')))
    await expect.poll(() => held.length).toBe(14)
    const goOn = setInterval(() => held.splice(0).forEach((release) => void release()), 10)
    onTestFinished(() => clearInterval(goOn))
    expect(statuses(await closed)).toEqual([200, 200, 200, 200])
    expect(statuses(await second)).toEqual(Array(20).fill(200))
  })

  it('is taken to have left a batch: nothing more is begun, and nothing is answered', async () => {
    const batch = JSON.stringify([call('held', {}, 1), call('hit', {}, 2), call('hit', {}, 3)])
    const socket = await open(test.url)
    const closed = untilClosed(socket)
    socket.write(`${post(`Content-Length: ${batch.length}`)}${batch}`)
    await expect.poll(() => held.length).toBe(1)
    // This answer shows that the server has read the end of the other connection.
    socket.end()
    expect((await send(test.url, { path: '/health' })).status).toBe(200)
    for (const release of held) release()
    expect(await closed).toBe('')
    expect(hits).toBe(1)
  })
})
