import { once } from 'node:events'
import type { Socket } from 'node:net'
import { expect, test as it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { rawSocket } from '../../test/helpers/sockets.ts'

const mebibyte = 1_048_576
/** Sixteen of these fit into the room. */
const large = mebibyte - 100
const test = await serviceForFile({ arriving_max: 16 * mebibyte })
const ada = await test.account()

const opened = (): Promise<Socket> => rawSocket(test.url, ada.cookie)
/** A masked text frame of this many bytes. */
const frame = (text: string): Buffer => {
  const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
  head.writeBigUInt64BE(BigInt(text.length), 2)
  return Buffer.concat([head, Buffer.from(text)])
}

it('messages that are still arriving give way to younger ones, when together they are too many', async () => {
  const heartbeat = frame('{"jsonrpc":"2.0","id":1,"method":"heartbeat"}'.padEnd(large))
  const sockets: Socket[] = []
  const cut: number[] = []
  for (let nth = 0; nth < 20; nth++) {
    const socket = await opened()
    socket.once('close', () => cut.push(nth))
    // Fully written before the next socket begins.
    await new Promise((resolve) => socket.write(heartbeat.subarray(0, -1), resolve))
    sockets.push(socket)
  }
  const last = sockets.at(-1) as Socket
  last.write(' ')
  const [answer] = await once(last, 'data')
  expect(String(answer)).toContain('"result":{}')
  await expect.poll(() => cut).toEqual([0, 1, 2, 3])
  for (const socket of sockets) socket.destroy()
})

it('complete messages and pongs add up to nothing', async () => {
  const heartbeat = frame('{"jsonrpc":"2.0","id":1,"method":"heartbeat"}'.padEnd(large))
  const pongs = Buffer.alloc(1000 * 131)
  for (let at = 0; at < pongs.length; at += 131) pongs.set([0x8a, 0xfd], at)
  const socket = await opened()
  for (let round = 0; round < 20; round++) {
    socket.write(Buffer.concat([heartbeat, pongs]))
    await once(socket, 'data')
  }
  const others = await Promise.all(Array.from({ length: 14 }, opened))
  for (const other of others) await new Promise((resolve) => other.write(heartbeat.subarray(0, -1), resolve))
  socket.write(heartbeat)
  const [answer] = await once(socket, 'data')
  expect(String(answer)).toContain('"result":{}')
  for (const one of [socket, ...others]) one.destroy()
})
