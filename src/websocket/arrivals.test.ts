import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test as it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { openSocket, rawSocket } from '../../test/helpers/sockets.ts'

const test = await serviceForFile()
const ada = await test.account()

it('a flood of small messages is handled a few in each turn of the event loop', async () => {
  const socket = await rawSocket(test.url, ada.cookie)
  socket.resume()
  const { tally } = test.service.app
  const count = 20_000
  const last = tally.requests + count
  const empty = Buffer.from([0x81, 0x80, 0, 0, 0, 0])
  socket.write(Buffer.concat(Array(count).fill(empty)))
  let most = 0
  for (let seen = tally.requests; seen < last; ) {
    await turn()
    most = Math.max(most, tally.requests - seen)
    seen = tally.requests
  }
  expect(most).toBeLessThanOrEqual(256)
  socket.destroy()
})

it('a flood of small messages waits in the connection, not in memory', async () => {
  const accepted: Socket[] = []
  subscribe('net.server.socket', (message) => accepted.push((message as { socket: Socket }).socket))
  const socket = await rawSocket(test.url, ada.cookie)
  socket.resume()
  const [server] = accepted as [Socket]
  const { tally } = test.service.app
  const text = Buffer.alloc(48, ' ')
  const frame = Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text])
  const [count, first, before] = [20_000, tally.requests, server.bytesRead]
  socket.write(Buffer.concat(Array(count).fill(frame)))
  let most = 0
  for (let handled = 0; handled < count; ) {
    await turn()
    handled = tally.requests - first
    most = Math.max(most, (server.bytesRead - before) / frame.length - handled)
  }
  expect(most).toBeLessThanOrEqual(8_192)
  socket.destroy()
})

it('more messages than one turn takes are answered in their order', async () => {
  const { ws, send, next } = await openSocket(test.url, { cookie: ada.cookie })
  const ids = Array.from({ length: 300 }, (_, at) => at)
  for (const id of ids) send({ jsonrpc: '2.0', id, method: 'heartbeat' })
  const answered: unknown[] = []
  while (answered.length < ids.length) answered.push((await next()).id)
  expect(answered).toEqual(ids)
  ws.close()
})
