import type { IncomingMessage } from 'node:http'
import type { EdgeRequest } from './reply.ts'

/** Headers that may come once only; where they come twice, none of them counts. */
const onceOnly = new Set(['authorization', 'x-daemon-token'])

/** What the edge reads of a Node request before any body: as it was sent. */
export function requestHead(
  request: IncomingMessage,
): Pick<EdgeRequest, 'method' | 'path' | 'query' | 'header' | 'address'> {
  const url = request.url as string
  const mark = url.indexOf('?')
  const { headers } = request
  return {
    method: request.method as string,
    path: mark < 0 ? url : url.slice(0, mark),
    query: mark < 0 ? '' : url.slice(mark + 1),
    header: (name) => {
      const value = headers[name] as string | undefined
      // Asked last: Node sorts all headers of the request for it.
      const isTwice = () => (request.headersDistinct[name]?.length ?? 0) > 1
      return value !== undefined && onceOnly.has(name) && isTwice() ? undefined : value
    },
    address: request.socket.remoteAddress,
  }
}
