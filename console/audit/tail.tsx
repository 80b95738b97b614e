import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { hearAudit, isHearing } from '../api/audit-feed.ts'
import { call } from '../api/client.ts'
import { Sentence } from '../api/event-rows.tsx'
import { useRun } from '../api/run.ts'
import { acting } from '../api/session.ts'
import { audit } from '../copy/audit.ts'
import { explainRead } from '../copy/errors.ts'
import { to } from '../lib/router.ts'
import { clockTime, fullTime } from '../lib/time.ts'
import { Button } from '../ui/button.tsx'
import { Fault } from '../ui/fault.tsx'
import { Checkbox, Field } from '../ui/field.tsx'
import { Badge, Note } from '../ui/note.tsx'
import { createTail, type Row } from './tail-rows.ts'

const phone = matchMedia('(width < 640px)')
/** All rows have the same height, so that their places can be computed: only those on screen are drawn. */
const heightOf = (): number => (phone.matches ? 56 : 32)
const overscan = 10

/** New rows as they are written, across lost connections and restarts; each once, in order, the newest at the end. */
export function Tail() {
  const [tail] = useState(() => createTail())
  const drawn = useSignal(0)
  const ending = useSignal<string | null>(null)
  const round = useSignal(0)
  const [isRead, read] = useState(false)
  const [sought, seek] = useState('')
  const draw = useRef<() => void>(() => {})
  useEffect(() => {
    let frame = 0
    // Once per frame, however many rows arrived.
    draw.current = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0
        drawn.value += 1
      })
    }
    const leave = hearAudit({
      item: (item) => {
        tail.take(item)
        draw.current()
      },
      lost: (about) => {
        tail.lost(about)
        draw.current()
      },
      ended: (reason) => {
        ending.value = reason
      },
    })
    phone.addEventListener('change', draw.current)
    return () => {
      leave()
      cancelAnimationFrame(frame)
      phone.removeEventListener('change', draw.current)
    }
  }, [round.value])
  const pause = (): void => {
    if (tail.isPaused) return
    tail.pause()
    draw.current()
  }
  const resume = useRun(async () => {
    await tail.resume(
      async (since_seq) => (await call('audit_log_list', { since_seq, limit: 200 }, acting.peek())).events,
    )
    draw.current()
  })
  drawn.value
  const { isPaused, newer } = tail
  const filter = sought.trim().toLowerCase()
  const rows = filter ? tail.rows.filter((row) => isWanted(row, filter)) : tail.rows
  return (
    <section class="section">
      <header>
        {ending.value === null ? (
          <Badge kind={isPaused || !isHearing.value ? 'warn' : 'ok'}>
            {isPaused ? audit.paused(newer) : isHearing.value ? audit.following : audit.connecting}
          </Badge>
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
            icon={isPaused ? 'play' : 'pause'}
            isBusy={resume.isBusy}
            onClick={() => (isPaused ? void resume.send(undefined) : pause())}
            shortcut="p"
          >
            {isPaused ? audit.resume(newer) : audit.pause}
          </Button>
        </span>
      </header>
      <Fault text={resume.error && explainRead(resume.error)} />
      <div class="bar">
        <Field label={audit.only_with} type="search" value={sought} onInput={seek} />
        <Checkbox label={audit.read_out} checked={isRead} onChange={read} />
      </div>
      {rows.length === 0 ? (
        <p class="soft tail is-empty">{filter ? audit.none_match : audit.waiting_first}</p>
      ) : (
        <Lines rows={rows} isPaused={isPaused} onLeave={pause} isRead={isRead} />
      )}
    </section>
  )
}

const isWanted = (row: Row, filter: string): boolean =>
  row.kind !== 'event' || JSON.stringify(Object.values(row.event)).toLowerCase().includes(filter)

/** Stays at the end while it follows; scrolling up or moving to a row pauses it. */
function Lines({
  rows,
  isPaused,
  onLeave,
  isRead,
}: {
  rows: readonly Row[]
  isPaused: boolean
  onLeave(): void
  isRead: boolean
}) {
  const own = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const height = heightOf()
  const room = own.current?.clientHeight ?? 600
  const total = rows.length * height
  const at = isPaused ? top : Math.max(0, total - room)
  const first = Math.max(0, Math.floor(at / height) - overscan)
  const last = Math.min(rows.length, Math.ceil((at + room) / height) + overscan)
  useLayoutEffect(() => {
    if (!isPaused && own.current) own.current.scrollTop = total
  })
  return (
    <div
      ref={own}
      role="log"
      aria-live={isRead ? 'polite' : 'off'}
      aria-label={audit.live}
      class="tail"
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop } }) => {
        if (!isPaused && scrollTop < total - room - height) onLeave()
        setTop(scrollTop)
      }}
      onFocusIn={({ target, currentTarget }) => target !== currentTarget && onLeave()}
    >
      <div style={{ height: `${total}px` }}>
        {rows.slice(first, last).map((row, index) => (
          <div
            key={row.kind === 'event' ? row.event.seq : `${row.kind} ${first + index}`}
            class={`tail-line is-${row.kind}`}
            style={{ transform: `translateY(${(first + index) * height}px)` }}
          >
            <Line row={row} />
          </div>
        ))}
      </div>
    </div>
  )
}

function Line({ row }: { row: Row }) {
  if (row.kind === 'gap') return audit.gap(row.from, row.until)
  if (row.kind === 'lost') return audit.lost(row.wait_s, row.after)
  if (row.kind === 'more') return audit.more(row.count)
  const { event } = row
  return (
    <>
      <a href={to(`/audit/${event.seq}`)} title={fullTime(event.created_at)}>
        {clockTime(event.created_at)}
      </a>
      <Sentence of={event} />
      <span class="soft push">{event.ip}</span>
    </>
  )
}
