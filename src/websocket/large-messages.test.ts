import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { WebSocket } from 'ws'
import { z } from 'zod'
import { call, reasonOf, rpc } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { openSocket, outcomeOf } from '../../test/helpers/sockets.ts'
import { query } from '../core/declare.ts'
import { unsent } from '../http/unsent.ts'

const mebibyte = 1_048_576
const { send } = WebSocket.prototype
const actions = {
  big: query({
    doc: 'Answers as many MiB as are asked for.',
    auth: { account: 'none', actor: 'none' },
    input: z.strictObject({ size: z.number() }),
    output: z.string(),
    handler: async ({ size }) => 'x'.repeat(size * mebibyte),
  }),
}

const test = await serviceForFile({ actions, unsent_max: 32 * mebibyte, answer_stall_ms: 1_000 })
const ada = await test.account()

const open = () => openSocket(test.url, { cookie: ada.cookie })

it('a large message counts until its client has read it', async () => {
  const socket = await open()
  socket.ws.pause()
  const answer = socket.call('big', { size: 14 })
  await expect.poll(() => unsent.bytes).toBeGreaterThan(14 * mebibyte)
  socket.ws.resume()
  expect(outcomeOf(await answer)).toBe('ok')
  await expect.poll(() => unsent.bytes).toBe(0)
  await socket.close()
})

it('messages that nobody reads leave no room for large answers, until one of the sockets is cut', async () => {
  const sockets = [await open(), await open()]
  const answers = sockets.map((socket) => {
    socket.ws.pause()
    return socket.call('big', { size: 14 })
  })
  await expect.poll(() => unsent.bytes).toBeGreaterThan(28 * mebibyte)
  expect(reasonOf(await rpc(test.url, call('big', { size: 6 })))).toBe('busy')
  expect(reasonOf(await rpc(test.url, call('big', { size: 0 })))).toBe('ok')
  // Only as much is cut as is needed: a socket gets more patience than a plain answer that is not read.
  await expect.poll(() => unsent.bytes).toBeLessThan(15 * mebibyte)
  expect(reasonOf(await rpc(test.url, call('big', { size: 6 })))).toBe('ok')
  for (const { ws } of sockets) ws.resume()
  const ends = sockets.map(({ closed }, index) =>
    Promise.race([closed.then(({ code }) => code), answers[index]?.then(outcomeOf)]),
  )
  expect((await Promise.all(ends)).sort()).toEqual([1006, 'ok'])
  await expect.poll(() => unsent.bytes).toBe(0)
  for (const { ws } of sockets) ws.terminate()
})

it('a socket that ends takes its unread messages out of the account', async () => {
  const socket = await open()
  socket.ws.pause()
  void socket.call('big', { size: 14 })
  await expect.poll(() => unsent.bytes).toBeGreaterThan(14 * mebibyte)
  socket.ws.terminate()
  await expect.poll(() => unsent.bytes).toBe(0)
})

it('small messages behind a backlog count too, and their socket is cut to make room', async () => {
  const sockets = await Promise.all(Array.from({ length: 5 }, open))
  for (const { ws } of sockets) ws.pause()
  // Too much together, but each within what one socket may have waiting.
  const full = 24 * mebibyte
  await expect
    .poll(() => {
      if (unsent.bytes <= full)
        for (const socket of sockets) for (let n = 0; n < 10; n++) void socket.call('big', { size: 0.06 })
      return unsent.bytes
    })
    .toBeGreaterThan(full)
  await expect.poll(() => unsent.bytes).toBeLessThan(full)
  for (const { ws } of sockets) ws.terminate()
  await expect.poll(() => unsent.bytes).toBe(0)
})

it('large messages that arrive at once are looked at one in a turn of the event loop', async () => {
  const sockets = await Promise.all(Array.from({ length: 4 }, open))
  let turn = 0
  let isOver = false
  const turns: number[] = []
  const sent = vi.spyOn(WebSocket.prototype, 'send').mockImplementation(function (this: WebSocket, ...rest) {
    if (String(rest[0]).includes('parse_error')) turns.push(turn)
    return Reflect.apply(send, this, rest)
  })
  const counting = (async () => {
    for (; !isOver; turn++) await nextTurn()
  })()
  const message = 'x'.repeat(100_000)
  for (const { ws } of sockets) ws.send(message, { fin: false })
  const begun = turn
  await expect.poll(() => turn - begun).toBeGreaterThan(200)
  for (const { ws } of sockets) ws.send('x', { fin: true })
  await Promise.all(sockets.map((socket) => socket.next()))
  isOver = true
  await counting
  sent.mockRestore()
  expect(new Set(turns).size).toBe(4)
  for (const { ws } of sockets) ws.terminate()
})
