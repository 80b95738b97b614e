import { z } from 'zod'
import { AuditEvent, auditColumns, auditJson } from '../audit/entry.ts'
import { numberForReading, partsOf, readApart, rowOf, type Stretch, seqEnd } from '../audit/numbering.ts'
import type { App } from '../core/app.ts'
import { closePage, openPage, type Page, pageInput, pageSize } from '../core/page.ts'
import { type Database, type Sql, sql } from '../db/db.ts'
import { jsonObject } from '../db/json.ts'
import { refusal } from '../errors.ts'
import { issue } from '../wire/issues.ts'
import { Int } from '../wire/types.ts'
import { numbersOf, type Selection } from './selection.ts'

/** A row with the current usernames of its accounts; the log itself stores no names. */
const NamedEvent = AuditEvent.extend({
  username: z.string().nullable(),
  target_username: z.string().nullable(),
})
const namedText = jsonObject('e', { ...auditJson, username: 'text?', target_username: 'text?' })

/** For methods with `json_text`. */
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

type Row = { seq: number; event: string }

/**
 * One page of a selection, as pieces of its JSON text. The rows are read last, with the username of the actor's account
 * or, without an actor, of the account.
 */
export async function readAuditPage(
  app: App,
  db: Pick<Database, 'rows'>,
  { page, offset, ...stretch }: AuditPage,
  selected: Selection,
): Promise<string[]> {
  const position = await numberForReading(app.db)
  const size = pageSize(page.limit)
  const rows: Row[] = []
  const parts = partsOf(stretch, position)
  // The offset counts rows over all parts, so they are read as one.
  for (const part of offset > 0 ? [{ ...stretch, isWide: parts.length > 1 }] : parts) {
    const numbers = numbersOf(selected, part, size, { skipped: offset, skippedMax: offsetMax })
    rows.push(
      ...(part.isWide
        ? await readApart<Row>(db, numbers, part, named)
        : await db.rows<Row>(named(numbers, part))),
    )
    if (rows.length >= size) break
  }
  const { rows: kept, next_cursor } = closePage(app, page, rows, ({ seq }) => [seq, stretch.direction])
  const events = kept.map(({ event }) => event).join(',')
  return ['{"events":[', events, `],"next_cursor":${JSON.stringify(next_cursor)}}`]
}

const named = (numbers: Sql, part: Stretch): Sql => sql`
    with page as (${numbers})
    select e.seq, ${namedText} as event from (
      select ${auditColumns}, ${username(sql`l.actor_id`, sql`l.account_id`)} as username,
        ${username(sql`l.target_actor_id`, sql`l.target_account_id`)} as target_username
      from page cross join lateral (${rowOf(sql`page.seq`, part)}) l
    ) e
    order by e.seq ${sql.raw(part.direction)}`

/** As subqueries, so that each row of the page costs index probes, whatever the planner estimates. */
const username = (actor_id: Sql, account_id: Sql): Sql => sql`(
  select username from account
  where id = coalesce((select account_id from actor where id = ${actor_id}), ${account_id}))`
