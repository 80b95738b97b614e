import { connect, type Socket } from 'node:net'

/** What an attacker knows about the server. Its public cells fill a page of 8 MiB. */
export type Target = { host: string; port: number }

/** One way to exhaust the server. Each is a file of its own, listed in `attacks.ts`. */
export type Attack = {
  /** Shown in the output. */
  name: string
  /** Runs until `over` aborts; resolves to a summary of what the server did. */
  run(target: Target, over: AbortSignal): Promise<string>
}

/** A request without a body, as text on the wire. */
export const get = (path: string, ...headers: string[]): string =>
  `${[`GET ${path} HTTP/1.1`, 'Host: x', ...headers].join('\r\n')}\r\n\r\n`
export const post = (length: number, ...headers: string[]): string =>
  `${['POST /api/rpc HTTP/1.1', 'Host: x', 'Content-Type: application/json', `Content-Length: ${length}`, ...headers].join('\r\n')}\r\n\r\n`

/** A well-formed bearer token that does not exist. */
export const strayBearer = (): string =>
  `Authorization: Bearer secret_svc_token_${Array.from({ length: 43 }, () => Math.floor(Math.random() * 36).toString(36)).join('')}`

/** A loopback address that no limiter has seen. */
const freshAddress = (): string => `127.${[1, 2, 3].map(() => 1 + Math.floor(Math.random() * 254)).join('.')}`

/** A higher rate would only measure the system's queue of connections. */
const opensPerSecond = 500

/**
 * Keeps `count` connections open until `over` aborts. Each is handed to `use`; one that the server ends is opened
 * again. Resolves to how many the server ended.
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
