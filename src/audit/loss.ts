import { type Database, type Sql, sql } from '../db/db.ts'
import type { Log } from '../log/log.ts'

/** A loss this long ago is over: the next one begins a new count, and `doctor` is silent about it. */
export const lossDays = 7

/** Keeps in the database how many audit rows were lost of late; off the request path. */
export type Losses = {
  add(rows: number, cause: string): void
  /** Writes what is waiting; part of the shutdown. */
  flush(): Promise<void>
}

export function createLosses(db: Database, log: Log): Losses {
  let waiting = 0
  let cause = ''
  let writing: Promise<void> | undefined

  const write = async (): Promise<void> => {
    while (waiting > 0) {
      const rows = waiting
      waiting = 0
      try {
        await db.run(counted(rows, cause))
      } catch (error) {
        // It goes along with the next loss, or with the shutdown.
        waiting += rows
        log.warn({ err: error }, 'the count of lost audit rows could not be stored')
        return
      }
    }
  }
  const flush = (): Promise<void> => {
    writing ??= write().finally(() => {
      writing = undefined
    })
    return writing
  }
  return {
    add: (rows, why) => {
      waiting += rows
      cause = why
      void flush()
    },
    flush,
  }
}

const counted = (rows: number, cause: string): Sql => sql`
  insert into audit_loss as l (lost_rows, cause) values (${rows}::bigint, ${cause})
  on conflict (id) do update set
    lost_rows = excluded.lost_rows + case when ${isOver} then 0 else l.lost_rows end,
    since = case when ${isOver} then excluded.since else l.since end,
    last_at = excluded.last_at,
    cause = excluded.cause`

const isOver = sql`l.last_at < now() - make_interval(days => ${sql.raw(lossDays)})`
