import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { AuditStreamError, auditStream } from '../../src/client/audit-stream.ts'
import { client } from '../api/client.ts'
import { type Event, Sentence } from '../api/event-rows.tsx'
import { server } from '../api/server.ts'
import { acting } from '../api/session.ts'
import { audit } from '../copy/audit.ts'
import { to } from '../lib/router.ts'
import { shortTime } from '../lib/time.ts'
import { Button } from '../ui/button.tsx'
import { Badge, Note } from '../ui/note.tsx'

type Row = { kind: 'event'; event: Event } | { kind: 'gap'; from: number; until: number }
/** How many rows are kept; older ones are in the log. */
const kept = 500

/** New rows as they are written, over lost connections and restarts; each once, in order. */
export function Tail() {
  const rows = useSignal<readonly Row[]>([])
  const held = useSignal<readonly Row[]>([])
  const isPaused = useSignal(false)
  const ending = useSignal<string | null>(null)
  const round = useSignal(0)
  const take = (more: readonly Row[]): void => {
    const target = isPaused.peek() ? held : rows
    target.value = [...more.toReversed(), ...target.peek()].slice(0, kept)
  }
  useEffect(() => {
    const stop = new AbortController()
    void follow(take, stop.signal).catch((error) => {
      if (!stop.signal.aborted)
        ending.value = error instanceof AuditStreamError ? error.reason : String(error)
    })
    return () => stop.abort()
  }, [round.value])
  const resume = (): void => {
    isPaused.value = false
    rows.value = [...held.peek(), ...rows.peek()].slice(0, kept)
    held.value = []
  }
  return (
    <section
      class="section"
      onKeyDown={(event) => {
        if (event.key === 'p') isPaused.value ? resume() : (isPaused.value = true)
      }}
    >
      <header>
        {ending.value === null ? (
          <Badge kind={isPaused.value ? 'warn' : 'ok'}>{audit.following}</Badge>
        ) : (
          <Note
            kind="warn"
            action={
              <Button
                small
                onClick={() => {
                  ending.value = null
                  round.value += 1
                }}
              >
                {audit.reconnect}
              </Button>
            }
          >
            {audit.ended[ending.value] ?? audit.ended_other(ending.value)}
          </Note>
        )}
        <span class="push">
          <Button
            icon={isPaused.value ? 'play' : 'pause'}
            onClick={() => (isPaused.value ? resume() : void (isPaused.value = true))}
          >
            {isPaused.value ? audit.resume(held.value.length) : audit.pause}
          </Button>
        </span>
      </header>
      <div role="log" aria-live="off" aria-label={audit.live} class="tail" tabIndex={0}>
        {rows.value.length === 0 && <p class="soft">{audit.waiting_first}</p>}
        {rows.value.map((row) => (
          <Line key={row.kind === 'event' ? row.event.id : `gap ${row.from}`} row={row} />
        ))}
      </div>
    </section>
  )
}

function Line({ row }: { row: Row }) {
  if (row.kind === 'gap') return <Note kind="warn">{audit.gap(row.from, row.until)}</Note>
  const { event } = row
  return (
    <div class="tail-line">
      <a href={to(`/audit/${event.seq}`)}>{shortTime(event.created_at)}</a>
      <Sentence of={event} />
      <span class="soft push">{event.ip}</span>
    </div>
  )
}

/** Hands rows on once per frame, however many came. */
async function follow(take: (rows: readonly Row[]) => void, signal: AbortSignal): Promise<void> {
  let waiting: Row[] = []
  const acts = acting.peek()
  const stream = auditStream(client, {
    path: server.paths.audit_stream,
    signal,
    ...(acts && { acting: acts }),
  })
  for await (const item of stream) {
    if (waiting.length === 0)
      requestAnimationFrame(() => {
        take(waiting)
        waiting = []
      })
    waiting.push(
      item.type === 'gap'
        ? { kind: 'gap', from: item.after + 1, until: item.resumed_after }
        : { kind: 'event', event: item.params },
    )
  }
}
