import { once } from 'node:events'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { type RawData, WebSocket } from 'ws'
import { open, type Reply } from './http.ts'

type Frame = {
  id?: string | number | null
  method?: string
  params?: unknown
  result?: unknown
  error?: { code: number; message: string; data: { reason: string; [key: string]: unknown } }
}

/** A real socket, used without our client. */
export type TestSocket = {
  ws: WebSocket
  /** Makes a call and resolves to its reply; by default ids count up. */
  call(method: string, params?: unknown, id?: string | number): Promise<Frame>
  /** Sends a string as it is, or a value as JSON. */
  send(message: unknown): void
  /** The next message that is not a reply to `call`. */
  next(): Promise<Frame>
  /** Messages received so far that `next` has not returned. */
  waiting: Frame[]
  /** Everything that happened, in order: `reply`, the method of a notification, the close code. */
  order: (string | number)[]
  /** Resolves when the server or the client has closed it. */
  closed: Promise<{ code: number; reason: string }>
  close(): Promise<void>
}

type Carrier = Record<string, string>

/** Opens a socket; rejects with `RefusedUpgrade` if the server refuses. */
export async function openSocket(url: string, headers: Carrier = {}, path = '/api/ws'): Promise<TestSocket> {
  const ws = new WebSocket(`${url.replace('http', 'ws')}${path}`, { headers, perMessageDeflate: false })
  const waiting: Frame[] = []
  const order: (string | number)[] = []
  const replies = new Map<unknown, (frame: Frame) => void>()
  let wake = (): void => {}
  let count = 0
  ws.on('message', (data: RawData) => {
    const frame = JSON.parse(String(data)) as Frame
    order.push(frame.method ?? 'reply')
    const answered = replies.get(frame.id)
    if (answered && frame.method === undefined) {
      replies.delete(frame.id)
      return answered(frame)
    }
    waiting.push(frame)
    wake()
  })
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    ws.on('close', (code, reason) => {
      order.push(code)
      resolve({ code, reason: String(reason) })
    })
  })
  ws.on('error', () => {})
  await opened(ws)
  const send = (message: unknown): void =>
    ws.send(typeof message === 'string' ? message : JSON.stringify(message))
  return {
    ws,
    send,
    waiting,
    order,
    closed,
    call: (method, params, id = ++count) =>
      new Promise((resolve) => {
        replies.set(id, resolve)
        send({ jsonrpc: '2.0', id, method, params })
      }),
    next: async () => {
      while (waiting.length === 0)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      return waiting.shift() as Frame
    },
    close: async () => {
      ws.close()
      await closed
    },
  }
}

/** The HTTP response to a refused upgrade. */
export class RefusedUpgrade extends Error {
  readonly reply: Reply
  constructor(reply: Reply) {
    super(`the upgrade was refused with ${reply.status} ${reply.text}`)
    this.reply = reply
  }
}

async function opened(ws: WebSocket): Promise<void> {
  const refused = new Promise<never>((_resolve, reject) => {
    ws.on('unexpected-response', (_request, response) => {
      text(response).then((body) => {
        const { statusCode: status = 0, headers } = response
        reject(new RefusedUpgrade({ status, headers, text: body, json: JSON.parse(body) }))
      }, reject)
    })
  })
  await Promise.race([once(ws, 'open'), refused])
}

/** The response to an upgrade that must be refused. */
export async function refusedUpgrade(url: string, headers: Carrier = {}, path?: string): Promise<Reply> {
  try {
    const socket = await openSocket(url, headers, path)
    socket.ws.terminate()
  } catch (error) {
    if (error instanceof RefusedUpgrade) return error.reply
    throw error
  }
  throw new Error('the upgrade was not refused')
}

/** The code, the reason and the detail or path of an error reply; `ok` for a result. */
export const outcomeOf = ({ error }: Frame): string =>
  error
    ? [error.code, error.data.reason, error.data.detail].filter((part) => part !== undefined).join(' ')
    : 'ok'

/** The connection of a WebSocket, for a test that writes the bytes of frames itself. */
export async function rawSocket(url: string, cookie: string): Promise<Socket> {
  const socket = await open(url)
  socket
    .on('error', () => {})
    .write(
      `GET /api/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nCookie: ${cookie}\r\n\r\n`,
    )
  await once(socket, 'data')
  return socket
}
