import type { AuditEvent } from '../audit/entry.ts'

/** Why a stream ends; its last block says so. */
export type StreamEnd =
  | 'revoked'
  | 'expired'
  | 'role_lost'
  | 'too_many_streams'
  | 'slow_consumer'
  | 'shutdown'

/** One or more encoded blocks of `text/event-stream`, each an event or a comment, shared by all streams that send them. */
export type Blocks = { readonly bytes: Uint8Array; readonly count: number }

const utf8 = new TextEncoder()
const block = (text: string): Blocks => ({ bytes: utf8.encode(text), count: 1 })

export const opening = block(': connected\n\n')
export const keepAlive = block(': keep-alive\n\n')

/** JSON escapes line breaks, so `data` is one line whatever the metadata contains. */
export const eventBlocks = (rows: readonly AuditEvent[]): Blocks => ({
  bytes: utf8.encode(
    rows
      .map((row) => `id: ${row.seq}\ndata: ${JSON.stringify({ method: row.event_type, params: row })}\n\n`)
      .join(''),
  ),
  count: rows.length,
})

export const gapBlock = (after: number, resumed_after: number): Blocks =>
  block(`event: gap\nid: ${resumed_after}\ndata: ${JSON.stringify({ after, resumed_after })}\n\n`)

export const closeBlock = (reason: StreamEnd): Blocks =>
  block(`event: close\ndata: ${JSON.stringify({ reason })}\n\n`)

const retryLine = utf8.encode('retry: 3000\n')

/** Adds the reconnection delay; only the first block after the opening carries it. */
export const withRetry = ({ bytes, count }: Blocks): Blocks => ({
  bytes: Buffer.concat([retryLine, bytes]),
  count,
})
