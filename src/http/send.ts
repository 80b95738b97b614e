import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { inOnePiece } from '../wire/json-text.ts'
import { type Connection, lingerMs } from './connection.ts'
import { type EdgeReply, isStream, type StreamBody, smallBody } from './exchange.ts'
import { smallAnswer } from './unsent.ts'

/** Writes a reply. Bytes that the client does not take count against its connection. */
export function send(
  connection: Connection,
  request: IncomingMessage,
  response: ServerResponse,
  reply: EdgeReply,
): void {
  const { status, headers, body } = reply
  if (isStream(body)) return void stream(connection, request, response, reply, body)
  if (response.destroyed || reply.isCut) return void response.destroy()
  const length = bytesOf(body)
  if (status !== 204 && status !== 304) headers['content-length'] = String(length)
  connection.handOver(response, length)
  if (!reply.close && !isLongUnread(request)) {
    if (connection.isLast) {
      headers.connection = 'close'
      connection.isEnding = true
    }
    response.writeHead(status, headers)
    if (body === null || body instanceof Uint8Array || request.method === 'HEAD') response.end(oneText(body))
    else if (length > smallAnswer) pour(response, typeof body === 'string' ? [body] : body)
    else if (typeof body === 'string' || length <= joinedMax) response.end(oneText(body))
    else writePieces(response, body)
    return
  }
  headers.connection = 'close'
  connection.isEnding = true
  connection.dropWaiting()
  response.writeHead(status, headers)
  if (body === null || request.method === 'HEAD') response.flushHeaders()
  else response.write(oneText(body))
  if (request.complete || !connection.mayLinger) return void response.end()
  swallow(connection, request, response)
}

/** Whether the client sends nothing more: it has left, or only waits for answers. */
export const hasEnded = (socket: Socket): boolean => socket.destroyed || socket.readableEnded

/** Whether a long rest of the body is unread; a chunked one may never end. */
const isLongUnread = ({ complete, headers }: IncomingMessage): boolean =>
  !complete &&
  (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > smallBody)

/** Discards the rest of the body for a while: cutting at once sends a reset, and many clients then lose the answer. */
function swallow(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
  const lingered = connection.linger()
  const end = (): void => {
    clearTimeout(timer)
    lingered()
    response.end()
  }
  const timer = setTimeout(end, lingerMs)
  request.once('end', end)
  request.once('close', end)
  request.resume()
}

export type Body = Exclude<EdgeReply['body'], StreamBody>

export function bytesOf(body: Body): number {
  if (typeof body === 'string' || body instanceof Uint8Array) return Buffer.byteLength(body)
  return body?.reduce((sum, text) => sum + Buffer.byteLength(text), 0) ?? 0
}

const oneText = (body: Body): string | Uint8Array | null =>
  body === null || body instanceof Uint8Array ? body : inOnePiece(body)

/** Up to this length, pieces are joined in less time than it takes to write each. */
const joinedMax = 8_192

/** Node encodes each text separately and hands all of them to the kernel in one call. */
function writePieces(response: ServerResponse, texts: readonly string[]): void {
  for (const text of texts.slice(0, -1)) response.write(text)
  response.end(texts.at(-1))
}

/** Size of one write to the kernel, in UTF-16 units; a completed write shows that the client reads. */
const pieceLength = 131_072

/** Writes a large body piece by piece, so that no more of it is encoded than the client takes. */
export function pour(to: Writable, texts: readonly string[]): void {
  const pieces = piecesOf(texts)
  const goOn = (): void => {
    while (!to.destroyed) {
      const { value, done } = pieces.next()
      if (done) return void to.end()
      if (!to.write(value)) return
    }
  }
  to.on('drain', goOn)
  goOn()
}

function* piecesOf(texts: readonly string[]): Generator<string> {
  for (const text of texts)
    for (let start = 0, end = 0; start < text.length; start = end) {
      end = start + pieceLength
      // A surrogate pair is one character.
      if ((text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end += 1
      yield text.slice(start, end)
    }
}

/** Sends a stream. It has no time limit: the request timeout of the server covers the request only. */
function stream(
  connection: Connection,
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers }: EdgeReply,
  body: StreamBody,
): void {
  const { socket } = request
  const leave = (): void => void response.destroy()
  if (hasEnded(socket)) leave()
  if (response.destroyed || !connection.beginStream(response)) return void body.gone()
  response.writeHead(status, headers)
  const gone = (): void => {
    socket.off('end', leave).off('close', gone)
    response.off('close', gone)
    body.gone()
  }
  socket.once('end', leave)
  // Before Node 24, a response behind another is not told of the loss of the connection.
  socket.once('close', gone)
  response.once('close', gone)
  response.on('drain', body.drained)
  // An unread request body would block the parser, and we would not see the client disconnect.
  request.resume()
  body.open({
    // A write to a connection that has just closed would be an unhandled error.
    write: (chunk) => !response.destroyed && response.write(chunk),
    end: () => void response.end(),
    cut: () => void response.destroy(),
  })
}
