import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { countingReaders, type Readers } from './readers.ts'

/** Bare connections that only count text frames, so that reading costs little CPU. */
export async function openReaders(
  { port, path, cookie }: { port: number; path: string; cookie: string },
  count: number,
): Promise<Readers> {
  const sockets: Socket[] = []
  const readers = countingReaders(sockets, count)
  for (let from = 0; from < count; from += 50) {
    const some = Array.from({ length: Math.min(50, count - from) }, async (_, i) => {
      const socket = connect({ port, host: '127.0.0.1' })
      sockets.push(socket)
      socket.write(
        `GET ${path} HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nCookie: ${cookie}\r\n` +
          `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n\r\n`,
      )
      const [head] = (await once(socket, 'data')) as [Buffer]
      if (!head.toString('latin1').startsWith('HTTP/1.1 101')) throw new Error(head.toString('latin1'))
      const parse = frameCounter(() => readers.took(from + i))
      parse(head.subarray(head.indexOf('\r\n\r\n') + 4))
      socket.on('data', parse)
    })
    await Promise.all(some)
  }
  return readers
}

/** Calls `onText` at the end of each text frame. Server frames are unmasked, and here shorter than 64 KiB. */
function frameCounter(onText: () => void): (chunk: Buffer) => void {
  let head: number[] = []
  let left = 0
  return (chunk) => {
    for (let at = 0; at < chunk.length; ) {
      if (left > 0) {
        const step = Math.min(left, chunk.length - at)
        left -= step
        at += step
      } else {
        head.push(chunk[at++] as number)
        const short = head[1] === undefined ? undefined : head[1] & 127
        if (short === undefined || (short === 126 && head.length < 4)) continue
        left = short === 126 ? (head[2] as number) * 256 + (head[3] as number) : short
      }
      if (left > 0) continue
      if (((head[0] as number) & 15) === 1) onText()
      head = []
    }
  }
}
