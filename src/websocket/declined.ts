import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { refusal } from '../errors.ts'
import { lingerMs } from '../http/connection.ts'
import { type EdgeReply, type EdgeRequest, isStream, type StreamBody, smallBody } from '../http/exchange.ts'
import { STATUS_CODES } from '../http/node-http.ts'
import { type Body, bytesOf, pour } from '../http/send.ts'
import { unsent } from '../http/unsent.ts'

/**
 * Requests that merely offer an upgrade, as some clients do with every one. A server without our options hands over
 * their connections.
 */

/** The body behind the head, if it arrives in time; only a declared `content-length` is supported. */
export function bodyBehind(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  timeoutMs: number,
): Pick<EdgeRequest, 'hasBody' | 'body'> {
  const length = Number(request.headers['content-length'] ?? 0)
  const rest = (): Promise<Uint8Array> =>
    new Promise((resolve, reject) => {
      // It closes only once.
      if (socket.destroyed) return reject(refusal('invalid_json_body'))
      const chunks: Buffer[] = []
      let size = 0
      // The HTTP server's timeouts no longer cover this connection.
      const late = setTimeout(() => socket.destroy(), timeoutMs)
      const gone = (): void => {
        clearTimeout(late)
        reject(refusal('invalid_json_body'))
      }
      const take = (chunk: Buffer): void => {
        chunks.push(chunk)
        size += chunk.length
        if (size < length) return
        clearTimeout(late)
        socket.off('data', take).off('close', gone).pause()
        resolve(Buffer.concat(chunks).subarray(0, length))
      }
      socket.once('close', gone)
      // From 24.9 on Node parses the body; before, the request ends without it.
      request.on('data', take).once('end', () => {
        if (size >= length) return
        socket.on('data', take)
        take(head)
      })
    })
  const body: EdgeRequest['body'] = async (limit, { isKnown }) => {
    // Nothing bounds how many of these arrive at once, so an anonymous one must be small.
    if (length > limit || (length > smallBody && !(await isKnown()))) return null
    return await rest()
  }
  return { hasBody: length > 0, body }
}

/** Writes a reply to the connection and closes it; cuts a client that takes nothing of it for `stallMs`. */
export function respond(request: IncomingMessage, socket: Duplex, reply: EdgeReply, stallMs: number): void {
  const { status, headers, body } = reply
  if (!socket.writable || reply.isCut) {
    if (isStream(body)) body.gone()
    return void socket.destroy()
  }
  // An immediate cut would send a reset, and many clients would never see the answer.
  socket.once('finish', () => {
    const lingering = setTimeout(() => socket.destroy(), lingerMs)
    request.resume()
    socket.resume().once('close', () => clearTimeout(lingering))
  })
  const isWhole = !isStream(body) && status !== 204 && status !== 304
  const length = isWhole && { 'content-length': String(bytesOf(body)) }
  const lines = Object.entries({ connection: 'close', ...headers, ...length })
    .flatMap(([name, value]) => [value].flat().map((one) => `${name}: ${one}\r\n`))
    .join('')
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines}\r\n`)
  if (isStream(body)) follow(request, socket, body)
  else if (body === null || request.method === 'HEAD') socket.end()
  else sendWhole(socket, body, stallMs)
}

function follow(request: IncomingMessage, socket: Duplex, body: StreamBody): void {
  const cut = (): void => void socket.destroy()
  request.resume()
  socket.on('drain', body.drained).once('end', cut).once('close', body.gone).resume()
  body.open({
    write: (chunk) => !socket.destroyed && socket.write(chunk),
    end: () => void socket.end(),
    cut,
  })
}

function sendWhole(socket: Duplex, body: Exclude<Body, null>, stallMs: number): void {
  const stalled = setTimeout(() => socket.destroy(), stallMs)
  const bytes = bytesOf(body)
  unsent.bytes += bytes
  socket
    .on('drain', () => stalled.refresh())
    .once('finish', () => clearTimeout(stalled))
    .once('close', () => {
      clearTimeout(stalled)
      unsent.bytes -= bytes
    })
  if (body instanceof Uint8Array) socket.end(body)
  else pour(socket, typeof body === 'string' ? [body] : body)
}
