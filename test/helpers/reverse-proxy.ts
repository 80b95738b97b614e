import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

type Seen = { method: string; path: string; body: string; headers: IncomingMessage['headers'] }

export type ReverseProxy = {
  /** The URL below which it serves the service. */
  url: string
  /** The requests so far. */
  seen: Seen[]
  /** Answers the next requests itself, in this order, instead of passing them on. */
  answer(...with_: ((response: ServerResponse) => void)[]): void
}

/** A proxy as in production: it serves a service below `/base`, and may answer with pages of its own. */
export async function reverseProxy(to: string): Promise<ReverseProxy> {
  const seen: Seen[] = []
  const own: ((response: ServerResponse) => void)[] = []
  const server = createServer(async (incoming, response) => {
    const body = await buffer(incoming)
    const { method = '', url = '', headers } = incoming
    seen.push({ method, path: url, body: String(body), headers })
    const answer = own.shift()
    if (answer) return answer(response)
    if (!url.startsWith('/base/')) return void response.writeHead(404).end('Nothing is here.')
    const outgoing = request(to + url.slice('/base'.length), { method, headers }, (answered) => {
      response.writeHead(answered.statusCode as number, answered.headers)
      answered.pipe(response)
    })
    outgoing.on('error', () => response.destroy())
    outgoing.end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/base`, seen, answer: (...answers) => void own.push(...answers) }
}

/** A response from the proxy itself. */
export const page =
  (status: number, text: string, headers: Record<string, string> = {}) =>
  (response: ServerResponse): void =>
    void response.writeHead(status, headers).end(text)

/** Half a response, then the connection is cut. */
export const cutOff = (response: ServerResponse): void => {
  response.writeHead(200, { 'content-length': '100' })
  response.write('{"jsonrpc":')
  setImmediate(() => response.destroy())
}
