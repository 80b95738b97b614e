import { type Queryable, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { issue } from '../wire/issues.ts'

/**
 * Refuses a time that is past, or more than `daysMax` ahead, by the clock of the database, which also judges what has
 * expired. A caller that then waits for locks must check again, because the time may pass during the wait.
 */
export async function requireAhead(
  db: Queryable,
  key: string,
  at: string | null | undefined,
  daysMax: number | null = null,
): Promise<void> {
  if (at == null) return
  const { past, far } = await db.one<{ past: boolean; far: boolean }>(sql`
    select ${at}::timestamptz <= statement_timestamp() as past,
      coalesce(${at}::timestamptz > statement_timestamp() + make_interval(days => ${daysMax}::int), false) as far`)
  if (past)
    throw refusal('invalid_params', {
      issues: [issue([key], 'too_small', 'A time in the future is required.')],
    })
  if (far)
    throw refusal('invalid_params', { issues: [issue([key], 'too_big', `At most ${daysMax} days ahead.`)] })
}
