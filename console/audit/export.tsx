import { useEffect, useRef, useState } from 'preact/hooks'
import { call, type Refusal } from '../api/client.ts'
import type { Event } from '../api/event-rows.tsx'
import { acting } from '../api/session.ts'
import { audit, exportMax } from '../copy/audit.ts'
import { words } from '../copy/common.ts'
import { explainRead } from '../copy/errors.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import type { Filter } from './filter.tsx'

type State =
  | { kind: 'ready' }
  | { kind: 'running'; wait_s: number }
  | { kind: 'stopped' }
  | { kind: 'done'; rest: number | null }

/** Reads the log from its beginning, a page at a time, into a file. */
export function Export({ filter, onClose }: { filter: Filter; onClose(): void }) {
  const [state, setState] = useState<State>({ kind: 'ready' })
  const [count, setCount] = useState(0)
  const [error, setError] = useState<Refusal | null>(null)
  const parts = useRef<string[]>([])
  const stop = useRef<AbortController | null>(null)
  useEffect(() => () => stop.current?.abort(), [])

  const start = async (): Promise<void> => {
    const own = new AbortController()
    stop.current = own
    parts.current = []
    setCount(0)
    setError(null)
    setState({ kind: 'running', wait_s: 0 })
    try {
      const rest = await readAll(filter, own.signal, (lines, total, wait_s) => {
        parts.current.push(lines)
        setCount(total)
        setState({ kind: 'running', wait_s })
      })
      setState({ kind: 'done', rest })
      save(parts.current)
    } catch (thrown) {
      if (!own.signal.aborted) setError(thrown as Refusal)
      setState({ kind: 'stopped' })
    }
  }
  const isRunning = state.kind === 'running'
  return (
    <Dialog
      title={audit.export_title}
      onClose={onClose}
      onSubmit={() => (state.kind === 'done' ? save(parts.current) : void start())}
      foot={
        <>
          <Button onClick={() => (isRunning ? stop.current?.abort() : onClose())}>
            {state.kind === 'done' ? words.close : words.cancel}
          </Button>
          <Button kind="primary" type="submit" isBusy={isRunning} autofocus>
            {state.kind === 'done' ? audit.save_again : audit.export_start}
          </Button>
        </>
      }
    >
      <p>{audit.export_about(Object.keys(filter).length > 0)}</p>
      <Fault text={error && explainRead(error)} />
      <div role="status" class="stack-tight">
        {isRunning && <progress max={exportMax} value={count} aria-label={audit.export_title} />}
        {isRunning && <p>{state.wait_s ? audit.export_wait(state.wait_s) : audit.export_rows(count)}</p>}
        {state.kind === 'stopped' && <p>{audit.export_stopped(count)}</p>}
        {state.kind === 'done' && <p>{audit.export_done(count)}</p>}
        {state.kind === 'done' && state.rest !== null && (
          <>
            <p>{audit.export_cut(state.rest)}</p>
            <pre>{audit.export_command(state.rest)}</pre>
          </>
        )}
      </div>
    </Dialog>
  )
}

/** Writes the same lines as `cellkeep audit export`. Returns the row after which there is more, if there is. */
async function readAll(
  filter: Filter,
  signal: AbortSignal,
  take: (lines: string, total: number, wait_s: number) => void,
): Promise<number | null> {
  let since_seq = 0
  let total = 0
  for (;;) {
    const input = { ...filter, since_seq, limit: 200 }
    const page = await call('audit_log_list', input, acting.peek(), signal).catch(async (error: Refusal) => {
      const wait_s = Number(error.data?.retry_after)
      if (error.reason !== 'rate_limited' || !(wait_s > 0)) throw error
      take('', total, wait_s)
      await sleep(wait_s * 1000, signal)
    })
    if (!page) continue
    const { events } = page
    total += events.length
    since_seq = events.at(-1)?.seq ?? since_seq
    take(events.map(lineOf).join(''), total, 0)
    if (page.next_cursor === null || events.length === 0) return null
    if (total >= exportMax) return since_seq
  }
}

const lineOf = ({ username, target_username, ...row }: Event): string => `${JSON.stringify(row)}\n`

const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })

function save(parts: readonly string[]): void {
  const url = URL.createObjectURL(new Blob([...parts], { type: 'application/jsonl' }))
  const link = document.createElement('a')
  link.href = url
  link.download = `audit-${new Date().toISOString().slice(0, 10)}.jsonl`
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
