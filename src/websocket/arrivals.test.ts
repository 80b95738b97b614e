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

it('more messages than one turn takes are answered in their order', async () => {
  const { ws, send, next } = await openSocket(test.url, { cookie: ada.cookie })
  const ids = Array.from({ length: 300 }, (_, at) => at)
  for (const id of ids) send({ jsonrpc: '2.0', id, method: 'heartbeat' })
  const answered: unknown[] = []
  while (answered.length < ids.length) answered.push((await next()).id)
  expect(answered).toEqual(ids)
  ws.close()
})
