import { z } from 'zod'
import { AuditEvent, auditColumns, numberRows } from '../audit/entry.ts'
import type { App } from '../core/app.ts'
import { closePage, openPage, type Page, pageInput, pageSize } from '../core/page.ts'
import { type Database, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { issue } from '../wire/issues.ts'
import { Int } from '../wire/types.ts'
import { numbersOf, type Selection, type Stretch, seqEnd } from './selection.ts'

/** A row with the current usernames of its accounts; the log itself stores no names. */
const NamedEvent = AuditEvent.extend({
  username: z.string().nullable(),
  target_username: z.string().nullable(),
})
type NamedEvent = z.output<typeof NamedEvent>

export const auditPage = z.object({ events: z.array(NamedEvent), next_cursor: z.string().nullable() })

const offsetMax = 10_000

export const auditPageInput = { ...pageInput(), offset: Int(0, offsetMax).nullish() }
type PageInput = {
  limit: number
  cursor?: string | null | undefined
  offset?: number | null | undefined
  since_seq?: number | null | undefined
}

export type AuditPage = Stretch & { page: Page; offset: number }

/** Where a page begins. The cursor holds the direction, so callers only need to repeat the filters. */
export function openAuditPage(
  app: App,
  method: string,
  bound: Readonly<Record<string, unknown>>,
  input: PageInput,
): AuditPage {
  const { cursor, offset, since_seq } = input
  const isGiven = (value: unknown): boolean => value !== null && value !== undefined
  const refuse = (key: 'cursor' | 'offset') =>
    refusal('invalid_params', {
      issues: [issue([key], 'invalid_value', 'Give only one of `cursor`, `offset` and `since_seq`.')],
    })
  if (isGiven(cursor) && (isGiven(offset) || isGiven(since_seq))) throw refuse('cursor')
  if (isGiven(offset) && isGiven(since_seq)) throw refuse('offset')
  const page = openPage(app, method, bound, input)
  const [after, way] = (page.after ?? []) as [number?, Stretch['direction']?]
  const direction = way ?? (isGiven(since_seq) ? 'asc' : 'desc')
  return {
    page,
    direction,
    from: direction === 'asc' ? (after ?? since_seq ?? 0) : 0,
    to: direction === 'desc' ? (after ?? seqEnd) : seqEnd,
    offset: offset ?? 0,
  }
}

/**
 * One page of a selection. The rows are read last, with the username of the actor's account or, without an actor,
 * of the account.
 */
export async function readAuditPage(
  app: App,
  db: Pick<Database, 'rows'>,
  { page, offset, ...stretch }: AuditPage,
  selected: Selection,
): Promise<z.output<typeof auditPage>> {
  await numberRows(app.db)
  const skip = { skipped: offset, skippedMax: offsetMax }
  const rows = await db.rows<NamedEvent>(sql`
    with page as (${numbersOf(selected, stretch, pageSize(page.limit), skip)})
    select ${auditColumns}, doer.username, subject.username as target_username
    from page join audit_log l on l.seq = page.seq
      left join actor on actor.id = l.actor_id
      left join account doer on doer.id = coalesce(actor.account_id, l.account_id)
      left join actor target on target.id = l.target_actor_id
      left join account subject on subject.id = coalesce(target.account_id, l.target_account_id)
    order by l.seq ${sql.raw(stretch.direction)}`)
  const { rows: events, next_cursor } = closePage(app, page, rows, ({ seq }) => [seq, stretch.direction])
  return { events, next_cursor }
}
