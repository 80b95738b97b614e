import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test as it, onTestFinished } from 'vitest'
import { WebSocketServer } from 'ws'
import { exchange, open, send, statuses, untilClosed } from '../../test/helpers/http.ts'
import { openSocket } from '../../test/helpers/sockets.ts'
import { createServer, type ServerOptions } from '../index.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'

/** `createServer`: the service beside an application of the consumer, on one port. */

let test: TestService
let ada: TestAccount
beforeAll(async () => {
  test = await testService({ request_timeout_ms: 1000 })
  ada = await test.account()
})
afterAll(() => test.close())

async function listen(options?: ServerOptions): Promise<string> {
  const server: Server = createServer(test.service, options)
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

it('ends a request that does not arrive within the time of the setting', async () => {
  const received = await exchange(
    await listen(),
    'POST /api/rpc HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
  )
  expect(statuses(received)).toEqual([408])
})
