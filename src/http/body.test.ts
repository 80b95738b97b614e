import { once } from 'node:events'
import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { call, exchange, open, rpc, send, statuses, untilClosed } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { query } from '../core/declare.ts'

const limit = 65_536
let hits = 0
const actions = {
  hit: query({
    doc: 'Counts its calls.',
    auth: { account: 'none', actor: 'none' },
    output: z.int(),
    handler: async () => ++hits,
  }),
}

const test = await serviceForFile({ actions, body_limit: limit })
beforeEach(() => {
  hits = 0
})

const paths = ['/api/rpc', '/api/account/login']
const head = (path: string, ...headers: string[]) =>
  [`POST ${path} HTTP/1.1`, 'Host: x', 'Content-Type: application/json', ...headers, '', ''].join('\r\n')
const chunk = (data: string) => `${data.length.toString(16)}\r\n${data}\r\n`
const chunked = (data: string) => `${chunk(data)}0\r\n\r\n`
const hit = JSON.stringify(call('hit'))
const good = `${head('/api/rpc', `Content-Length: ${hit.length}`)}${hit}`

describe('the limit', () => {
  it('passes a body of exactly its size and refuses one byte more', async () => {
    const exact = await rpc(test.url, hit.padEnd(limit))
    expect([exact.status, hits]).toEqual([200, 1])
    for (const path of paths) {
      const { status, json } = await send(test.url, { method: 'POST', path, body: hit.padEnd(limit + 1) })
      expect([status, json]).toEqual([413, { error: 'payload_too_large' }])
    }
    expect(hits).toBe(1)
  })

  it('counts bytes, not characters', async () => {
    const text = JSON.stringify(call('hit', {}, 'é'))
    expect((await rpc(test.url, text.padEnd(limit - 1))).status).toBe(200)
    expect((await rpc(test.url, text.padEnd(limit))).status).toBe(413)
  })

  it('holds for a chunked body, whose connection ends as soon as it is crossed', async () => {
    const framing = ['Transfer-Encoding: chunked', 'Connection: close']
    expect(
      statuses(await exchange(test.url, head('/api/rpc', ...framing), chunked(hit.padEnd(limit)))),
    ).toEqual([200])
    // The last chunk is never sent, so the server must not wait for it.
    const over = chunk(hit.padEnd(limit + 1))
    const seen = await Promise.all(
      paths.map((path) => exchange(test.url, head(path, 'Transfer-Encoding: chunked'), over)),
    )
    expect(seen.map(statuses)).toEqual([[413], [413]])
    for (const received of seen) expect(received).toMatch(/connection: close/i)
    expect(hits).toBe(1)
  })

  it('is judged where a REST body is read: after the guards', async () => {
    const bytes = head('/api/account/password', 'Transfer-Encoding: chunked') + chunk('x'.repeat(limit + 1))
    expect(statuses(await exchange(test.url, bytes))).toEqual([401])
  })

  it('gives an endless chunked body one answer and the end of the connection, on every path', async () => {
    const feedEndlessly = async (path: string) => {
      const socket = await open(test.url)
      const closed = untilClosed(socket)
      socket.write(head(path, 'Transfer-Encoding: chunked'))
      const piece = chunk('x'.repeat(16_384))
      const feed = () => {
        while (socket.writable && socket.write(piece));
      }
      socket.on('drain', feed)
      feed()
      return statuses(await closed)
    }
    const all = [...paths, '/api/account/logout', '/nowhere', '/health']
    expect(await Promise.all(all.map(feedEndlessly))).toEqual([[413], [413], [401], [404], [405]])
  })

  it('a request behind a refused body is neither answered nor carried out', async () => {
    const over = 'x'.repeat(limit + 1)
    for (const first of [
      head('/api/rpc', `Content-Length: ${over.length}`) + over,
      head('/api/rpc', 'Transfer-Encoding: chunked') + chunked(over),
    ])
      expect(statuses(await exchange(test.url, first, good))).toEqual([413])
    expect(hits).toBe(0)
  })
})

describe('a refused body', () => {
  const big = 'x'.repeat(100 * limit)

  it('is reported to a fetch client that sends it whole or as a stream', async () => {
    const request = { method: 'POST', headers: { 'content-type': 'application/json' } }
    const stream = { ...request, body: new Blob([big]).stream(), duplex: 'half' } as RequestInit
    for (const path of paths)
      for (const init of [{ ...request, body: big }, stream]) {
        const body = init === stream ? new Blob([big]).stream() : big
        const response = await fetch(test.url + path, { ...init, body })
        expect([response.status, await response.json()]).toEqual([413, { error: 'payload_too_large' }])
      }
  })

  it('is reported to a client that reads only after it has written everything', async () => {
    const socket = await open(test.url)
    const written = new Promise((resolve) =>
      socket.write(head('/api/rpc', `Content-Length: ${big.length}`) + big, resolve),
    )
    await written
    expect(statuses(await untilClosed(socket))).toEqual([413])
  })

  it('is not asked for where the client waits for 100 Continue', async () => {
    const expectation = ['Expect: 100-continue', `Content-Length: ${hit.length}`]
    const refused = [
      head('/api/rpc', 'Expect: 100-continue', `Content-Length: ${limit + 1}`),
      head('/nowhere', ...expectation),
      head('/api/account/password', ...expectation),
      head('/api/rpc', ...expectation).replace('application/json', 'text/plain'),
    ]
    const seen = await Promise.all(refused.map((bytes) => exchange(test.url, bytes)))
    expect(seen.map(statuses)).toEqual([[413], [404], [401], [415]])
  })

  it('is asked for with 100 Continue where it is wanted', async () => {
    const socket = await open(test.url)
    socket.write(
      head('/api/rpc', 'Expect: 100-continue', `Content-Length: ${hit.length}`, 'Connection: close'),
    )
    const [interim] = await once(socket, 'data')
    expect(String(interim)).toMatch(/^HTTP\/1\.1 100 /)
    socket.write(hit)
    expect(statuses(await untilClosed(socket))).toEqual([200])
    expect(hits).toBe(1)
  })
})

describe('the media type', () => {
  const types: [type: string | undefined, status: number][] = [
    ['application/json', 200],
    ['APPLICATION/JSON', 200],
    ['application/json;charset=UTF-8', 200],
    ['application/json ; charset="utf-8"', 200],
    ['application/json; profile=x', 200],
    ['application/json; charset=latin1', 415],
    ['application/json; charset=utf-16', 415],
    ['application/json; charset = latin1', 415],
    ['application/json; profile=x; charset=latin1', 415],
    ['application/json; charset=', 415],
    ['application/jsonx', 415],
    ['application/json, text/plain', 415],
    ['text/json', 415],
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['multipart/form-data; boundary=x', 415],
    ['', 415],
    [undefined, 415],
  ]
  it.each(types)('%s gets %i', async (type, status) => {
    const line = type === undefined ? '' : `Content-Type: ${type}\r\n`
    const bytes = `POST /api/rpc HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${line}Content-Length: ${hit.length}\r\n\r\n${hit}`
    const received = await exchange(test.url, bytes)
    expect(statuses(received)).toEqual([status])
    if (status === 415) expect(received).toContain('{"error":"unsupported_media_type"}')
  })

  it.each([
    ['gzip', 415],
    ['br', 415],
    ['identity, gzip', 415],
    ['identity', 200],
    ['Identity', 200],
  ])('Content-Encoding %s gets %i', async (encoding, status) => {
    expect((await rpc(test.url, hit, { 'content-encoding': encoding })).status).toBe(status)
  })

  it('is not asked for where there is no body', async () => {
    const reply = await send(test.url, {
      method: 'POST',
      path: '/api/rpc',
      headers: { 'content-type': 'text/plain', 'content-length': 0 },
    })
    expect(reply.json).toMatchObject({ id: null, error: { code: -32700 } })
  })

  it('of a JSON body is judged after the credential on REST, also by routes without input, which ignore its JSON', async () => {
    const ada = await test.account()
    const post = (path: string, cookie?: string, type = 'text/plain') =>
      send(test.url, {
        method: 'POST',
        path,
        body: 'not JSON',
        headers: { 'content-type': type, ...(cookie && { cookie }) },
      })
    expect((await post('/api/account/password')).status).toBe(401)
    expect((await post('/api/account/password', ada.cookie)).status).toBe(415)
    expect((await post('/api/account/login')).status).toBe(415)
    expect((await post('/api/account/logout')).status).toBe(401)
    expect((await post('/api/account/logout', ada.cookie)).status).toBe(415)
    expect((await post('/api/account/logout', ada.cookie, 'application/json')).status).toBe(200)
  })
})

describe('a Request handed to fetch', () => {
  const info = { address: '127.0.0.1' }
  const post = (body: string | ReadableStream, headers = {}) =>
    new Request('http://x/api/rpc', {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', ...headers },
      ...(typeof body !== 'string' && { duplex: 'half' }),
    } as RequestInit)

  it('is answered like one over a socket, with or without a length header', async () => {
    for (const body of [hit, new Blob([hit]).stream()]) {
      const response = await test.service.fetch(post(body), info)
      expect([response.status, await response.json()]).toMatchObject([200, { id: 1 }])
    }
    expect(hits).toBe(2)
  })

  it('with an empty stream has no body, as over a socket', async () => {
    const declared = { 'content-length': '0', 'content-type': 'text/plain' }
    const overFetch = await test.service.fetch(post(new Blob([]).stream(), declared), info)
    const overSocket = await exchange(
      test.url,
      `${good.split('Content-Type')[0]}Content-Length: 0\r\nConnection: close\r\n\r\n`,
    )
    expect([overFetch.status, await overFetch.text()]).toEqual([400, overSocket.split('\r\n\r\n')[1]])
  })

  it('meets the same limit, media type and paths', async () => {
    const replies = await Promise.all(
      [
        post(hit.padEnd(limit)),
        post(hit.padEnd(limit + 1)),
        post(new Blob([hit.padEnd(limit + 1)]).stream()),
        post('', { 'content-length': String(limit + 1) }),
        post(hit, { 'content-type': 'text/plain' }),
        new Request('http://x/api/rpc/'),
        new Request('http://x/health', { method: 'HEAD' }),
      ].map((request) => test.service.fetch(request, info)),
    )
    expect(replies.map(({ status }) => status)).toEqual([200, 413, 413, 413, 415, 404, 200])
  })
})
