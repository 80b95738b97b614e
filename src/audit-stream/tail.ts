import { setTimeout as delay } from 'node:timers/promises'
import { type AuditEvent, auditColumns, numberRows } from '../audit/entry.ts'
import type { App } from '../core/app.ts'
import { type Database, sql } from '../db/db.ts'
import { type Blocks, eventBlocks } from './blocks.ts'

/** The rows after one position, as one statement saw them. */
export type Reading = {
  /** In rising `seq`; at most `batch`. */
  rows: AuditEvent[]
  /** The reading is complete up to here. */
  end: number
  /** The highest number ever given. */
  newest: number
  /** The highest number that retention has removed. */
  removed_seq: number
  /** All rows encoded; built once for all streams. */
  blocks(): Blocks
}

/** The single reader of the log for all audit streams of this node; idle while none is connected. */
export type Tail = {
  /** Passes every reading from the next one on; call the returned function to stop. */
  follow(take: (reading: Reading) => void): () => void
  /** Resolves when everything committed before the call has been passed on; rejects if it cannot be read. */
  fresh(): Promise<void>
  /** Reads the rows after `after`, for a stream that is behind the tail. */
  read(after: number): Promise<Reading>
  /** Everything up to here has been passed on. */
  readonly position: number
  /** Stops reading; resolves when nothing is running. */
  end(): Promise<void>
}

const batch = 200

/** Signals may get lost, and rows written outside mutations send none. */
const pollMs = 1_000

/** Min time between two readings, so that one reading serves many concurrent writers. */
const restMs = 20

export function createTail({ db, hub, log }: Pick<App, 'db' | 'hub' | 'log'>): Tail {
  const followers = new Set<(reading: Reading) => void>()
  let position: number | undefined
  let asked: PromiseWithResolvers<void> | undefined
  let running: Promise<void> | undefined
  /** When the next reading may start. */
  let next = 0
  let isFailing = false
  let isOver = false
  let stop = (): void => {}

  function start(): void {
    // Skip rows written while no stream was open.
    position = undefined
    const poll = setInterval(wake, pollMs).unref()
    const unlisten = hub.listen(({ wroteAudit }) => {
      if (wroteAudit) wake()
    })
    stop = () => {
      clearInterval(poll)
      unlisten()
    }
  }

  /** One reading serves everyone who asks before it starts. */
  function fresh(): Promise<void> {
    if (!asked) {
      asked = Promise.withResolvers()
      // `wake` ignores the result.
      asked.promise.catch(() => {})
    }
    const { promise } = asked
    running ??= run().finally(() => {
      running = undefined
    })
    return promise
  }

  const wake = (): void => void fresh()

  async function run(): Promise<void> {
    while (asked && !isOver) {
      const rest = next - performance.now()
      if (rest > 0) await delay(rest)
      next = performance.now() + restMs
      const { resolve, reject } = asked
      asked = undefined
      try {
        await advance()
        isFailing = false
        resolve()
      } catch (error) {
        if (!isFailing && !isOver) log.warn({ err: error }, 'the audit log cannot be read for the streams')
        isFailing = true
        reject(error)
      }
    }
    asked?.reject(new Error('the tail has ended'))
    asked = undefined
  }

  async function advance(): Promise<void> {
    await numberRows(db)
    if (position === undefined) {
      position = (await readAfter(db, Number.MAX_SAFE_INTEGER)).newest
      return
    }
    for (let isMore = true; isMore && !isOver; ) {
      const reading = await readAfter(db, position)
      isMore = reading.rows.length === batch
      position = reading.end
      for (const take of followers) take(reading)
    }
  }

  return {
    follow: (take) => {
      if (followers.size === 0) start()
      followers.add(take)
      return () => {
        if (followers.delete(take) && followers.size === 0) stop()
      }
    },
    fresh,
    read: (after) => readAfter(db, after),
    get position() {
      return position ?? 0
    },
    end: async () => {
      isOver = true
      stop()
      await running
    },
  }
}

/** One statement, so that a number missing from its rows was removed before it ran. */
async function readAfter(db: Database, after: number): Promise<Reading> {
  type Row = { newest: number; removed_seq: number } & AuditEvent
  const found = await db.readOnly.rows<Row | (Row & { id: null })>(sql`
    select p.seq as newest, p.removed_seq, row.*
    from audit_position p left join lateral (
      select ${auditColumns} from audit_log l
      where l.seq > ${after}::bigint order by l.seq limit ${sql.raw(batch)}
    ) row on true
    order by row.seq`)
  const [{ newest, removed_seq }] = found as [Row]
  const rows = found
    .filter(({ id }) => id !== null)
    .map(({ newest: _newest, removed_seq: _removed, ...row }): AuditEvent => row)
  const end = rows.length === batch ? (rows.at(-1) as AuditEvent).seq : Math.max(after, newest)
  let blocks: Blocks | undefined
  return {
    rows,
    end,
    newest,
    removed_seq,
    blocks: () => {
      blocks ??= eventBlocks(rows)
      return blocks
    },
  }
}
