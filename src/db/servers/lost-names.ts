import type { LogEvent } from '../../log/events.ts'
import { nameIsLost } from './failure.ts'

const minuteMs = 60_000
const toleratedMax = 10

/** Counts prepared statements that were lost, and logs at most once a minute if there are many. */
export function lostNames(
  onError: (error: unknown, what: string, event: LogEvent) => void,
): (error: unknown) => void {
  let since = 0
  let count = 0
  return (error) => {
    if (!nameIsLost(error)) return
    if (performance.now() - since > minuteMs) {
      since = performance.now()
      count = 0
    }
    count += 1
    if (count === toleratedMax + 1)
      onError(
        error,
        'a connection pooler loses prepared statements; set CELLKEEP_DATABASE_STATEMENTS=unnamed (`database_statements`)',
        'statement_names_lost',
      )
  }
}
