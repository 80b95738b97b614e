import { type AuditEvent, auditColumns } from '../audit/entry.ts'
import { numberRows } from '../audit/numbering.ts'
import type { App } from '../core/app.ts'
import { type ReadOnly, sql } from '../db/db.ts'
import { createFairQueue } from '../limits/fair-queue.ts'
import { type Blocks, eventBlocks } from './blocks.ts'
import { createReadings } from './readings.ts'

/** The rows after one position, as one statement saw them; encoded once for all streams. */
export type Page = {
  /** In rising `seq`; at most `batch`. */
  blocks: Blocks
  /** The page is complete up to here. */
  end: number
  /** The highest number that retention has removed. */
  removed_seq: number
  /** Seconds since its oldest row was written; null without rows. */
  age: number | null
}

/** The log as the audit streams of this node read it; idle while none is connected. */
export type Tail = {
  /** Keeps the tail up to date; call the returned function to leave. */
  join(): () => void
  /** Resolves when `position` includes everything committed before the call; rejects if it cannot be read. */
  fresh(): Promise<void>
  /** The rows after a position, as soon as there are any. */
  after(position: number): Promise<Page>
  /** The highest number that streams can read up to. */
  readonly position: number
  /**
   * How often nothing was read for a long time, because the process, its event loop or the database stood still. Rows
   * from such a pause may follow a revocation that this node has missed.
   */
  pauses(): number
  /** Stops reading; resolves when nothing is running. */
  end(): Promise<void>
}

const batch = 200

/** Signals may get lost, and rows written outside mutations send none. */
const pollMs = 1_000

/** The time within which a stream must be closed. */
const pauseMs = 2_000

/** Max numbers that a page of old rows covers, so that it opens few partitions of the log. */
const reach = 10_000_000

/**
 * Pages of old rows that are read at the same time. A stream asks for the next as soon as its client has read one, and a
 * hundred of them would keep everybody else from the database.
 */
const replaysMax = 2

/** Live streams share the newest page; others share one if they happen to be at the same position. */
const pagesMax = 4

export function createTail({ db, hub, log, observer }: Pick<App, 'db' | 'hub' | 'log' | 'observer'>): Tail {
  /** By the position before their rows, oldest first. */
  const pages = new Map<number, Promise<Page>>()
  const replays = createFairQueue(replaysMax, Number.POSITIVE_INFINITY)
  let members = 0
  let position: number | undefined
  let removed = 0
  let moved = Promise.withResolvers<void>()
  let [pauses, readAt] = [0, performance.now()]
  let stop = (): void => {}

  function start(): void {
    // Skip rows written while no stream was open.
    position = undefined
    readAt = performance.now()
    pages.clear()
    const poll = setInterval(wake, pollMs).unref()
    const unlisten = hub.listen(({ wroteAudit }) => wroteAudit && wake())
    stop = () => {
      clearInterval(poll)
      unlisten()
    }
  }

  const readings = createReadings(advance, (error) =>
    log.warn({ event: 'audit_unreadable', err: error }, 'the audit log cannot be read for the streams'),
  )
  const wake = (): void => void readings.fresh()

  function countPauses(): number {
    if (performance.now() - readAt > pauseMs) {
      pauses++
      readAt = performance.now()
    }
    return pauses
  }

  async function advance(): Promise<void> {
    await numberRows(db)
    // A statement sees rows that are numbered while it is planned, but not a partition created for them meanwhile. So
    // it reads no further than the numbers given before it began.
    const { seq, removed_seq } = await db.readOnly.one<{ seq: number; removed_seq: number }>(
      sql`select seq, removed_seq from audit_position`,
    )
    // Pages that were read before may hold rows that retention has removed.
    if (removed_seq > removed) pages.clear()
    removed = removed_seq
    let at = position ?? seq
    for (let isMore = true; isMore && !readings.isOver; ) {
      const page = await readAfter(db.readOnly, at, seq)
      if (page.end > at) keep(at, Promise.resolve(page))
      if (page.age !== null) observer.observe('stream_lag_seconds', page.age)
      at = page.end
      isMore = page.blocks.count === batch
      countPauses()
      readAt = performance.now()
      position = at
      // Resolved even if there was nothing new, so that streams that have ended stop waiting.
      moved.resolve()
      moved = Promise.withResolvers()
    }
  }

  const replay = (after: number, upTo: number): Promise<Page> =>
    replays.run('', async () => {
      // A replica that lacks the rows up to here would answer with an empty page.
      await db.replicas?.fence.take()
      return await readAfter(db.replicas?.reads() ?? db.readOnly, after, Math.min(upTo, after + reach))
    })

  function keep(after: number, page: Promise<Page>): Promise<Page> {
    pages.set(after, page)
    page.catch(() => pages.delete(after))
    const [oldest] = pages.keys()
    if (pages.size > pagesMax) pages.delete(oldest as number)
    return page
  }

  return {
    join: () => {
      if (++members === 1) start()
      return () => {
        if (--members === 0) stop()
      }
    },
    fresh: readings.fresh,
    after: async (at) => {
      while (position === undefined || at >= position) await moved.promise
      // Only up to the position of the live streams, so that a stream that catches up shares the next page with them.
      const page = await (pages.get(at) ?? keep(at, replay(at, position)))
      // The log may end before this place, after a fail-over that lost rows: look again when there may be others.
      if (page.end === at) {
        pages.delete(at)
        await moved.promise
      }
      return page
    },
    get position() {
      return position ?? 0
    },
    pauses: countPauses,
    end: async () => {
      const ended = readings.end()
      stop()
      await ended
    },
  }
}

/** One statement, so that a number missing from its rows was removed before it ran. */
async function readAfter(db: Pick<ReadOnly, 'rows'>, after: number, upTo: number): Promise<Page> {
  type Row = { newest: number; removed_seq: number; age: number | null } & AuditEvent
  const found = await db.rows<Row | (Row & { id: null })>(sql`
    select p.seq as newest, p.removed_seq, extract(epoch from now() - row.created_at)::float8 as age, row.*
    from audit_position p left join lateral (
      select ${auditColumns} from audit_log l
      where l.seq > ${after}::bigint and l.seq <= ${upTo}::bigint order by l.seq limit ${sql.raw(batch)}
    ) row on true
    order by row.seq`)
  const [{ newest, removed_seq, age }] = found as [Row]
  const rows = found
    .filter(({ id }) => id !== null)
    .map(({ newest: _newest, removed_seq: _removed, age: _age, ...row }): AuditEvent => row)
  const last = rows.length === batch ? (rows.at(-1) as AuditEvent).seq : Math.min(newest, upTo)
  return { blocks: eventBlocks(rows), end: Math.max(after, last), removed_seq, age }
}
