import type { Observer } from '../../observe/observer.ts'
import { batched, type Line } from '../batched.ts'
import { type Sql, sql } from '../sql.ts'
import type { Primary } from './primary.ts'

/**
 * A position in the write-ahead log of the primary. Every commit that was acknowledged before this is read lies below
 * it, also with `synchronous_commit = off`.
 */
export const place = sql`(case current_setting('synchronous_commit')
  when 'off' then pg_current_wal_insert_lsn() else pg_current_wal_flush_lsn() end - '0/0')::bigint`

export type Fence = {
  /** For the statement that reads the credential, whose rows then go to `note`. */
  readonly column: Sql
  note(rows: readonly { fence?: number }[]): void
  /** For calls that read no credential: one statement for all that ask in a turn of the event loop. */
  take(): Promise<void>
  /** The highest place seen, so at least the fence of every caller; null: none seen since the last fail-over. */
  readonly newest: number | null
}

export function createFence(
  point: <T>(query: Sql, shared?: string) => Promise<T[]>,
  { primary, observer }: { primary: Line & Pick<Primary, 'admission'>; observer: Observer },
): Fence {
  let seen: { place: number; timeline: number | null } | undefined
  const newestOn = (timeline: number | null): number | null =>
    seen?.timeline === timeline ? seen.place : null
  const note: Fence['note'] = ([row]) => {
    if (row?.fence === undefined) return
    const { timeline } = primary.admission
    seen = { place: Math.max(newestOn(timeline) ?? 0, row.fence), timeline }
  }
  const load = async (): Promise<Map<string, void>> => {
    note(await point<{ fence: number }>(sql`select ${place} as fence`, 'fence'))
    return new Map()
  }
  const ask = batched(load, { line: primary, watched: { site: 'fence', observer } })
  return {
    column: sql`, ${place} as fence`,
    note,
    take: () => ask(''),
    get newest() {
      return newestOn(primary.admission.timeline)
    },
  }
}
