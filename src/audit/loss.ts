import { type Database, type Sql, sql } from '../db/db.ts'
import type { Log } from '../log/log.ts'

/** After this many days a loss is history: `doctor` no longer reports it, and the next loss starts a new count. */
export const lossDays = 7

/** Stores in the database how many audit rows were lost recently; off the request path. */
export type Losses = {
  add(rows: number, cause: string): void
  /** Writes the waiting count; part of the shutdown. */
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
        // The next loss or the shutdown retries.
        waiting += rows
        log.warn({ event: 'audit_rows_lost', err: error }, 'the count of lost audit rows could not be stored')
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
