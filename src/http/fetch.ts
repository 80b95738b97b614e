import { setImmediate as turn } from 'node:timers/promises'
import { refusal } from '../errors.ts'
import { lingeringMax, lingerMs } from './connection.ts'
import {
  alreadyRead,
  type EdgeReply,
  type EdgeRequest,
  isStream,
  pathAndQuery,
  type Sender,
  type StreamBody,
  smallBody,
} from './exchange.ts'

/** What a fetch-style host knows besides the request. */
export type FetchInfo = {
  /** The address of the peer; a request without one fails with `internal_error`. */
  address: string
}

/** The adapter for any server that works with the web-standard Request and Response. */
export function fetchHandler(handle: (request: EdgeRequest) => Promise<EdgeReply>) {
  return async (request: Request, info: FetchInfo): Promise<Response> => {
    // Not parsed by URL: for a request without a valid `Host`, Bun gives only the path, or a URL that does not parse.
    const target = request.url.replace(/#.*/s, '').replace(/^https?:\/\/[^/?]*/, '')
    const { status, headers, body } = await handle({
      method: request.method,
      ...pathAndQuery(target),
      header: (name) => request.headers.get(name) ?? undefined,
      address: info?.address,
      // A Request created in this process may have a body without a header that declares it; some servers give every
      // POST a stream, even without a body.
      hasBody: request.body !== null && request.headers.get('content-length') !== '0',
      body: (limit, { isKnown }) => readBody(request, limit, isKnown),
      isGone: () => request.signal.aborted,
      hasEnded: () => request.signal.aborted,
    })
    await discardLong(request)
    const sent =
      typeof body === 'string' || body === null
        ? body
        : body instanceof Uint8Array
          ? new Uint8Array(body)
          : isStream(body)
            ? readable(body, request.signal)
            : encoded(body)
    const lines = Object.entries(headers).flatMap(([name, value]) =>
      [value].flat().map((one): [string, string] => [name, one]),
    )
    return new Response(request.method === 'HEAD' ? null : sent, { status, headers: lines })
  }
}

/** Texts, each encoded when it is read. */
function encoded(texts: readonly string[]): ReadableStream<Uint8Array> {
  const left = texts.values()
  return new ReadableStream({
    pull(controller) {
      const { value, done } = left.next()
      if (done) controller.close()
      else controller.enqueue(Buffer.from(value))
    },
  })
}

/** How much the stream buffers before its producer is told to wait. */
const heldBytes = 65_536

/** A client that disconnects cancels the body; some hosts abort the request instead. */
function readable(body: StreamBody, signal: AbortSignal): ReadableStream<Uint8Array> {
  let isOpen = true
  const gone = (): void => {
    isOpen = false
    body.gone()
  }
  const start = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    const fail = (reason: unknown): void => {
      if (!isOpen) return
      controller.error(reason)
      gone()
    }
    if (signal.aborted) return void fail(signal.reason)
    signal.addEventListener('abort', () => fail(signal.reason), { once: true })
    body.open({
      write: (chunk) => {
        if (!isOpen) return false
        controller.enqueue(chunk)
        return (controller.desiredSize ?? 0) > 0
      },
      end: () => {
        if (!isOpen) return
        controller.close()
        gone()
      },
      cut: () => fail(new Error('The stream was not read.')),
    })
  }
  return new ReadableStream<Uint8Array>(
    { start, pull: body.drained, cancel: gone },
    { highWaterMark: heldBytes, size: (chunk) => chunk?.byteLength ?? 0 },
  )
}

let lingering = 0

/**
 * Discards the rest of a long body for a while. If it is left unread or cancelled, hosts cut the connection, and a
 * client that is still sending loses the answer.
 */
async function discardLong({ body, headers }: Request): Promise<void> {
  const length = Number(headers.get('content-length') ?? Number.POSITIVE_INFINITY)
  if (!body || body.locked || length <= smallBody || lingering >= lingeringMax) return
  lingering += 1
  let timer: ReturnType<typeof setTimeout> | undefined
  const over = new Promise<{ done: true }>((resolve) => {
    timer = setTimeout(() => resolve({ done: true }), lingerMs)
  })
  const reader = body.getReader()
  const next = async (): Promise<{ done: boolean }> => {
    // The chunks of a body that was made in this process may all be ready: nothing else would run between them.
    await turn()
    return await Promise.race([over, reader.read()]).catch(() => ({ done: true }))
  }
  while (!(await next()).done);
  clearTimeout(timer)
  lingering -= 1
}

async function readBody(
  request: Request,
  limit: number,
  isKnown: Sender['isKnown'],
): Promise<Uint8Array | null> {
  if (!request.body) return new Uint8Array()
  if (request.body.locked || request.bodyUsed) throw alreadyRead()
  const chunks: Uint8Array[] = []
  let [size, isAsked] = [0, false]
  const { signal } = request
  const reader = request.body.getReader()
  const gone = (): never => {
    throw refusal('invalid_json_body')
  }
  // Some hosts abort the request of a client that disconnects, and leave its body unfinished.
  const cancel = (): void => void reader.cancel().catch(() => {})
  signal.addEventListener('abort', cancel)
  try {
    for (;;) {
      if (signal.aborted) gone()
      const { done, value } = await reader.read().catch(gone)
      if (done) return signal.aborted ? gone() : Buffer.concat(chunks)
      size += value.length
      if (size > limit) return null
      if (size > smallBody && !isAsked) {
        isAsked = true
        await isKnown()
      }
      chunks.push(value)
    }
  } finally {
    signal.removeEventListener('abort', cancel)
    reader.releaseLock()
  }
}
