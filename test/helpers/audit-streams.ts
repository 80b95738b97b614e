import { once } from 'node:events'
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http'
import { sql } from '../../src/db/db.ts'
import type { TestService } from '../../src/testing/index.ts'

export const streamPath = '/api/account/audit/stream'

export type StreamBlock = { event: string; id: number; data: Record<string, unknown>; text: string }

export type OpenStream = {
  status: number
  headers: IncomingHttpHeaders
  /** Every byte of the body so far. */
  text(): string
  /** The next block or comment, without its blank line. Rejects if the stream ends first. */
  next(): Promise<string>
  /** The next `count` events, gaps and closes, without comments. */
  take(count: number): Promise<StreamBlock[]>
  /** The remaining blocks, once the service has ended the body. */
  rest(): Promise<StreamBlock[]>
  /** Pauses and resumes reading from the connection. */
  pause(): void
  resume(): void
  /** Cuts the connection. */
  leave(): void
}

/** Opens an audit stream on its own connection; resolves for a refusal too. */
export async function openStream(
  { url }: Pick<TestService, 'url'>,
  headers: OutgoingHttpHeaders,
  query = '',
): Promise<OpenStream> {
  const outgoing = request(url + streamPath + query, { headers, agent: false })
  outgoing.on('error', () => {})
  outgoing.end()
  const [response] = await once(outgoing, 'response')
  let text = ''
  let read = 0
  let isOver = false
  let heard = Promise.withResolvers<void>()
  const wake = (): void => {
    heard.resolve()
    heard = Promise.withResolvers()
  }
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => {
    text += chunk
    wake()
  })
  response.on('error', () => {})
  response.on('close', () => {
    isOver = true
    wake()
  })
  const next = async (): Promise<string> => {
    for (;;) {
      const end = text.indexOf('\n\n', read)
      if (end >= 0) {
        const block = text.slice(read, end)
        read = end + 2
        return block
      }
      if (isOver) throw new Error(`the stream ended; its last bytes: ${text.slice(-300)}`)
      await heard.promise
    }
  }
  const take = async (count: number): Promise<StreamBlock[]> => {
    const blocks: StreamBlock[] = []
    while (blocks.length < count) {
      const block = parse(await next())
      if (block) blocks.push(block)
    }
    return blocks
  }
  return {
    status: response.statusCode,
    headers: response.headers,
    text: () => text,
    next,
    take,
    rest: async () => {
      while (!isOver) await heard.promise
      return (
        text
          .slice(read)
          .split('\n\n')
          // Behind the last blank line is nothing, or what a cut has left of an event.
          .slice(0, -1)
          .flatMap((block) => parse(block) ?? [])
      )
    },
    pause: () => void response.pause(),
    resume: () => void response.resume(),
    leave: () => void outgoing.destroy(),
  }
}

function parse(text: string): StreamBlock | undefined {
  const lines = text.split('\n')
  const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
  const data = field('data')
  if (data === undefined) return undefined
  return { event: field('event') ?? 'message', id: Number(field('id') ?? -1), data: JSON.parse(data), text }
}

/** Writes rows of type `note` with `bytes` of metadata each, without a signal to the nodes. */
export const writeRows = ({ service }: Pick<TestService, 'service'>, count: number, bytes = 0) =>
  service.app.db.run(sql`
    insert into audit_inbox (event_type, outcome, metadata)
    select 'note', 'success', jsonb_build_object('n', i, 'text', repeat('x', ${bytes}::int))
    from generate_series(1, ${count}::int) i order by i`)

/** Signals to the node that rows were written, as a commit does. */
export const signalRows = ({ service }: Pick<TestService, 'service'>): void =>
  service.app.hub.publish({ notifications: [], closings: [], wroteAudit: true })

/** Removes rows up to `seq` as retention does. */
export const removeRows = ({ service }: Pick<TestService, 'service'>, seq: number) =>
  service.app.db.run(sql`
    with gone as (delete from audit_log where seq <= ${seq} returning seq)
    update audit_position set removed_seq = (select max(seq) from gone)`)
