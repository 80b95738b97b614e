import { refusal } from '../errors.ts'
import type { EdgeReply, EdgeRequest } from './edge.ts'

/** What a fetch-shaped host knows beside the request. */
export type FetchInfo = {
  /** The peer's address; without one a request is refused with `internal_error`. */
  address: string
}

/** The web-standard adapter, for embedding in any server that speaks Request and Response. */
export function fetchHandler(handle: (request: EdgeRequest) => Promise<EdgeReply>) {
  return async (request: Request, info: FetchInfo): Promise<Response> => {
    const { pathname, search } = new URL(request.url)
    const { status, headers, body } = await handle({
      method: request.method,
      path: pathname,
      query: search.slice(1),
      header: (name) => request.headers.get(name) ?? undefined,
      address: info?.address,
      // A Request made in this process has a body and no header that says so.
      hasBody: request.body !== null,
      body: (limit) => readBody(request, limit),
      isGone: () => request.signal.aborted,
    })
    return new Response(request.method === 'HEAD' ? null : body, { status, headers })
  }
}

async function readBody(request: Request, limit: number): Promise<Uint8Array | null> {
  if (!request.body) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of request.body) {
      size += chunk.length
      if (size > limit) return null
      chunks.push(chunk)
    }
  } catch {
    throw refusal('invalid_json_body')
  }
  return Buffer.concat(chunks)
}
