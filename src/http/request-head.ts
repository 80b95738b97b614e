import type { IncomingMessage } from 'node:http'
import type { EdgeRequest } from './reply.ts'

/** Headers that may be sent once only; if one comes twice, neither counts. */
const onceOnly = new Set(['authorization', 'x-daemon-token'])

/** The parts of a Node request that the edge reads before any body, as they were sent. */
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
      // Checked last, because `headersDistinct` makes Node process all headers of the request.
      const isTwice = () => (request.headersDistinct[name]?.length ?? 0) > 1
      return value !== undefined && onceOnly.has(name) && isTwice() ? undefined : value
    },
    address: request.socket.remoteAddress,
  }
}
