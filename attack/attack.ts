import { connect, type Socket } from 'node:net'

/** What an attacker knows of the server: its address, and that public cells fill a page of 8 MiB. */
export type Target = { host: string; port: number }

/** One way to wear the server out; each has a file of its own and is listed in `attacks.ts`. */
export type Attack = {
  /** Names it in the output, with what is done. */
  name: string
  /** Goes on until `over` aborts; resolves to what the server did about it. */
  run(target: Target, over: AbortSignal): Promise<string>
}

/** A path, or a whole request, as text on the wire. */
export const get = (path: string, ...headers: string[]): string =>
  `${[`GET ${path} HTTP/1.1`, 'Host: x', ...headers].join('\r\n')}\r\n\r\n`
export const post = (length: number, ...headers: string[]): string =>
  `${['POST /api/rpc HTTP/1.1', 'Host: x', 'Content-Type: application/json', `Content-Length: ${length}`, ...headers].join('\r\n')}\r\n\r\n`

/** A bearer of the right form that nobody holds. */
export const strayBearer = (): string =>
  `Authorization: Bearer secret_svc_token_${Array.from({ length: 43 }, () => Math.floor(Math.random() * 36).toString(36)).join('')}`

/** An address of this machine that no limiter has seen. */
const freshAddress = (): string => `127.${[1, 2, 3].map(() => 1 + Math.floor(Math.random() * 254)).join('.')}`

/** More at once would only measure how long the queue of connections is that the system keeps. */
const opensPerSecond = 500

/**
 * Keeps `count` connections open until `over`: each is handed to `use`, and one that the server has ended is
 * opened anew. Resolves to how many the server ended.
 */
export async function crowd(
  { host, port }: Target,
  count: number,
  over: AbortSignal,
  use: (socket: Socket) => void,
): Promise<number> {
  let ended = 0
  const open = new Set<Socket>()
  const begin = (): void => {
    if (over.aborted) return
    const socket = connect({ host, port, localAddress: freshAddress() })
    open.add(socket)
    socket.on('error', () => {})
    socket.once('connect', () => use(socket))
    socket.once('close', () => {
      open.delete(socket)
      if (over.aborted) return
      ended += 1
      setTimeout(begin, 1_000)
    })
  }
  for (let index = 0; index < count; index++) setTimeout(begin, (index * 1_000) / opensPerSecond)
  await new Promise((resolve) => over.addEventListener('abort', resolve, { once: true }))
  for (const socket of open) socket.destroy()
  return ended
}
