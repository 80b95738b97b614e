import { once } from 'node:events'
import { createServer as httpServer, type Server } from 'node:http'
import { connect, createServer as http2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test as it, onTestFinished, vi } from 'vitest'
import { WebSocketServer } from 'ws'
import { z } from 'zod'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { exchange, open, send, statuses, untilClosed } from '../../test/helpers/http.ts'
import { openSocket } from '../../test/helpers/sockets.ts'
import { createServer, nodeListener, query, type ServerOptions } from '../index.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'

/** `createServer`: the service beside an application of the consumer, on one port. */

let test: TestService
let ada: TestAccount
beforeAll(async () => {
  test = await testService({ request_timeout_ms: 1000, audit_stream: true })
  ada = await test.account({ roles: ['admin'] })
})
afterAll(() => test.close())

async function listen(options?: ServerOptions): Promise<string> {
  return await urlOf(createServer(test.service, options))
}

async function urlOf(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const upgrade = (path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
  `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nCookie: ${ada.cookie}\r\n\r\n`

it('gives the service its paths, as they were sent, and the application all others', async () => {
  const url = await listen({ request: ({ url }, response) => response.end(JSON.stringify({ mine: url })) })
  expect((await send(url, { path: '/ready?x=1' })).json).toEqual({ ready: true })
  expect((await send(url, { path: '/api/account/verify', headers: { cookie: ada.cookie } })).status).toBe(200)
  for (const path of ['/', '/api', '/api/rpc/', '/api/rpc2?a=b', '/health/live/x'])
    expect((await send(url, { path })).json).toEqual({ mine: path })
  const socket = await openSocket(url, { cookie: ada.cookie })
  expect(await socket.call('account_verify')).toMatchObject({ result: { id: ada.id } })
  await socket.close()
})

it('answers 404 where there is no application', async () => {
  expect((await send(await listen(), { path: '/other' })).status).toBe(404)
})

it.each<[what: string, make: () => unknown, says: RegExp]>([
  [
    'an application in place of the options',
    () => createServer(test.service, (() => {}) as never),
    /as `\{ request/,
  ],
  [
    'an object in place of a function',
    () => createServer(test.service, { request: {} as never }),
    /"request"/,
  ],
  ['a misspelled option', () => createServer(test.service, { requests: () => {} } as never), /"requests"/],
  ['a service that is not awaited', () => createServer(Promise.resolve(test.service) as never), /await/],
  ['a listener of a whole service', () => nodeListener(test.service as never), /service\.handle/],
])('refuses %s at once, and says what it takes', (_what, make, says) => {
  expect(make).toThrow(says)
})

it('answers 505 on a server of node:http2', async () => {
  const server = http2Server(nodeListener(test.service.handle) as never).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const [headers] = await once(client.request({ ':path': '/health' }), 'response')
  expect(headers[':status']).toBe(505)
  client.destroy()
  server.close()
})

it.each(['/ready', '/slow'])(
  'sends the answer of %s before it answers an upgrade behind it',
  async (path) => {
    const url = await listen({
      request: (_request, response) => void setTimeout(() => response.end('done'), 50),
    })
    const received = await exchange(url, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n${upgrade('/api/ws')}`)
    expect(statuses(received)).toEqual([200, 400])
  },
)

it('leaves upgrades on other paths to the application, if it has a listener for them', async () => {
  const mine = new WebSocketServer({ noServer: true })
  mine.on('connection', (socket) =>
    socket.on('message', (data) => socket.send(`{"method":"echo","params":${data}}`)),
  )
  const url = await listen({
    upgrade: (request, socket, head) =>
      mine.handleUpgrade(request, socket, head, (accepted) => mine.emit('connection', accepted, request)),
  })
  const socket = await openSocket(url, {}, '/mine')
  socket.send('7')
  expect(await socket.next()).toEqual({ method: 'echo', params: 7 })
  await socket.close()
  const own = await openSocket(url, { cookie: ada.cookie })
  await own.close()
})

it.each([true, false])(
  'answers a request that merely offers an upgrade as if it had not; Node asks first: %s',
  async (asks) => {
    const server = createServer(test.service, {
      request: ({ url, headers }, response) => response.end(JSON.stringify([url, headers['x-mine']])),
    })
    // As in Node before 24.9.
    if (!asks) Object.assign(server, { shouldUpgradeCallback: () => true })
    const url = await urlOf(server)
    const ask = (path: string) =>
      exchange(
        url,
        `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nX-Mine: yes\r\n\r\n`,
      )
    for (const [path, body] of [
      ['/mine?a=%20', '["/mine?a=%20","yes"]'],
      ['/health', '{"status":"ok"}'],
    ] as const) {
      const received = await ask(path)
      expect([statuses(received), received.split('\r\n\r\n')[1]]).toEqual([[200], body])
    }
    const socket = await openSocket(url, { cookie: ada.cookie })
    await socket.close()
  },
)

it('an application gets a body announced with 100-continue', async () => {
  const url = await listen({
    request: async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      response.end(body)
    },
  })
  const socket = await open(url)
  socket.write(
    'POST /mine HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\n',
  )
  expect(String((await once(socket, 'data'))[0])).toContain('100 Continue')
  const received = untilClosed(socket)
  socket.write('hello')
  expect(await received).toMatch(/200 OK[\s\S]*hello$/)
})

describe('while the service drains', () => {
  it.each([
    ['the service', '/api/rpc?method=held&id=1', /connection: close/i],
    ['the application', '/mine', /200 OK/],
  ])('a running request to %s is answered, and then its connection ends', async (_whose, path, expected) => {
    const begun = Promise.withResolvers<void>()
    const answered = Promise.withResolvers<void>()
    const hold = async () => {
      begun.resolve()
      await answered.promise
      return {}
    }
    const auth = { account: 'none', actor: 'none' } as const
    const held = query({ doc: 'Waits.', auth, output: z.object({}), handler: hold })
    const own = await testService({ actions: { held } })
    onTestFinished(() => own.close())
    const server = createServer(own.service, {
      request: (_request, response) => void hold().then(() => response.end('done')),
    })
    server.keepAliveTimeout = 0 // No timeout.
    const socket = await open(await urlOf(server))
    const received = untilClosed(socket)
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    await begun.promise
    own.service.leave('draining')
    const closed = once(server, 'close')
    server.close()
    server.closeIdleConnections()
    answered.resolve()
    expect(await received).toMatch(expected)
    await closed
  })
})

it('ends a request that does not arrive within the time of the setting', async () => {
  const received = await exchange(
    await listen(),
    'POST /api/rpc HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
  )
  expect(statuses(received)).toEqual([408])
})

describe('a server without our options, which hands over whatever offers an upgrade,', () => {
  const offered = (line: string, cookie = ada.cookie, body = '') =>
    `${line} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nCookie: ${cookie}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const own = () => urlOf(httpServer(nodeListener(test.service.handle)).on('upgrade', test.service.upgrade))
  const bodyOf = (received: string): string => {
    const [head = '', body = ''] = received.split('\r\n\r\n')
    expect(head.toLowerCase()).toContain(`content-length: ${body.length}`)
    return body
  }

  it('gets each answer whole: of one text, of several, and of none', async () => {
    const url = await own()
    await ada.client.cell_create({ kind: 'page', data: { text: 'x'.repeat(100_000) } })
    const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'cell_list' })
    for (const body of [list, `[${list},${list}]`]) {
      const answer = bodyOf(await exchange(url, offered('POST /api/rpc', ada.cookie, body)))
      const alike = await send(url, {
        method: 'POST',
        path: '/api/rpc',
        body,
        headers: { cookie: ada.cookie },
      })
      expect(JSON.parse(answer)).toEqual(alike.json)
    }
    const slow = await open(url)
    const received = untilClosed(slow)
    const request = offered('POST /api/rpc', ada.cookie, list)
    slow.write(request.slice(0, -9))
    await new Promise((resolve) => setTimeout(resolve, 20))
    slow.write(request.slice(-9))
    expect(JSON.parse(bodyOf(await received))).toMatchObject({ id: 1 })
    expect(bodyOf(await exchange(url, offered('GET /health')))).toBe('{"status":"ok"}')
    expect(bodyOf(await exchange(url, offered('GET /api/account/verify')))).toBe('')
    const head = await exchange(url, offered('HEAD /health'))
    expect(head).toMatch(/content-length: 15\r\n\r\n$/i)
  })

  it('has a request that does not arrive in time ended', async () => {
    const part = offered('POST /api/rpc', ada.cookie, '{"jsonrpc"').slice(0, -1)
    expect(await exchange(await own(), part)).toBe('')
  })

  it('leaves no request running whose client is cut before its body is read', async () => {
    const { app } = test.service
    const server = httpServer(nodeListener(test.service.handle)).on('upgrade', test.service.upgrade)
    const closed = new Promise((resolve) => {
      server.once('connection', (socket) => socket.once('close', resolve))
    })
    const client = await open(await urlOf(server))
    const { read } = app.callers
    const judging = vi.spyOn(app.callers, 'read').mockImplementationOnce(async (...from) => {
      client.resetAndDestroy()
      await closed
      return await read(...from)
    })
    onTestFinished(() => judging.mockRestore())
    client.write(offered('POST /api/rpc', ada.cookie, 'x'.repeat(70_000)).slice(0, -69_990))
    await expect.poll(() => judging.mock.calls.length).toBe(1)
    await expect.poll(() => app.tally.running).toBe(0)
  })

  it('gets a stream as it happens, and leaves none behind', async () => {
    const { cookie, client } = await test.account({ roles: ['admin'] })
    const follow = async () => {
      const socket = await open(url)
      const received = untilClosed(socket)
      socket.write(offered('GET /api/account/audit/stream', cookie))
      expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
      return { socket, received }
    }
    const url = await own()
    const streams = () => test.service.app.hub.count().streams
    const [followed, left] = [await follow(), await follow()]
    expect(streams()).toBe(2)
    left.socket.destroy()
    await expect.poll(streams, { timeout: 30_000 }).toBe(1)
    await client.cell_create({ kind: 'page', data: {} })
    await client.account_session_revoke_all()
    const text = await followed.received
    expect(text).toContain('\r\n\r\n: connected\n\n')
    expect(text).toContain('"method":"cell_create"')
    expect(text).toMatch(/event: close\ndata: {"reason":"revoked"}\n\n$/)
    expect(text.toLowerCase()).not.toContain('content-length')
    expect(streams()).toBe(0)
  })
})

describe('a body that the application has read', () => {
  const { log, lines } = capturedLog()
  let own: TestService
  beforeAll(async () => {
    own = await testService({ log })
  })
  afterAll(() => own.close())

  const path = '/api/account/login'
  const sent = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'ada', password: 'a long password' }),
  }

  it.each(['fetch', 'nodeListener'])('given to %s is a flaw that the log names', async (way) => {
    const told = lines().length
    let response: Response
    if (way === 'fetch') {
      const request = new Request(`http://localhost${path}`, sent)
      await request.json()
      response = await own.service.fetch(request, { address: '127.0.0.1' })
    } else {
      const listener = nodeListener(own.service.handle)
      const url = await urlOf(
        httpServer(async (request, response) => {
          await json(request)
          listener(request, response)
        }),
      )
      response = await fetch(`${url}${path}`, sent)
    }
    expect(response.status).toBe(500)
    expect(await response.json()).toEqual({ error: 'internal_error' })
    expect(JSON.stringify(lines().slice(told))).toMatch(/before any body parser/)
  })
})
