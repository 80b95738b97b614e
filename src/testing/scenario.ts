import assert from 'node:assert/strict'
import type { AuditRow } from '../audit/audit.ts'
import { sql } from '../db/db.ts'
import { type Notification, notifications } from '../notifications.ts'
import type { TestService } from './service.ts'

/** What one call is expected to do; whatever is left out must not happen. */
export type ScenarioExpectation = {
  /** The refusal; left out: the call succeeds. */
  reason?: string
  /** The audit rows it leaves, in the order of writing. A row needs its type; other keys are compared when given. */
  audit?: (Partial<AuditRow> & { event_type: string })[]
  /** The notifications it sends, in order. One needs its method; the other keys are compared when given. */
  notify?: (Partial<Notification> & { method: string })[]
}

type Written = AuditRow & { written: number }

/**
 * Runs one call and checks its outcome and exactly the audit rows it left, with metadata of the declared
 * shape; a row too many fails as much as a row too few. Resolves to the result of the call; a refusal has none.
 */
export function scenario<T>(
  test: Pick<TestService, 'service'>,
  act: () => Promise<T>,
  expected?: ScenarioExpectation & { reason?: undefined },
): Promise<T>
export function scenario<T>(
  test: Pick<TestService, 'service'>,
  act: () => Promise<T>,
  expected: ScenarioExpectation,
): Promise<T | undefined>
export async function scenario<T>(
  test: Pick<TestService, 'service'>,
  act: () => Promise<T>,
  expected: ScenarioExpectation = {},
): Promise<T | undefined> {
  const before = await lastWritten(test)
  const sent: Notification[] = []
  const deaf = test.service.app.hub.listen(({ notifications }) => sent.push(...notifications))
  let result: T | undefined
  let reason: string | undefined
  try {
    result = await act()
  } catch (error) {
    reason = reasonOf(error)
    if (reason === undefined) throw error
  } finally {
    deaf()
  }
  assert.equal(reason, expected.reason, 'the reason of the refusal')
  const rows = await rowsAfter(test, before)
  const wanted = expected.audit ?? []
  assert.deepEqual(
    rows.map((row) => row.event_type),
    wanted.map((row) => row.event_type),
    'the audit rows of the call, and no others',
  )
  rows.forEach((row, index) => {
    const want = { outcome: 'success', ...wanted[index] } as Record<string, unknown>
    for (const [key, value] of Object.entries(want))
      assert.deepEqual(row[key as keyof Written], value, `${row.event_type}.${key}`)
    assert.equal(test.service.app.registry.events.flaw(row), undefined, row.event_type)
  })
  checkNotifications(sent, expected.notify ?? [])
  return result
}

/** Of a `CellkeepError` of the client, or of a `ServiceError` of `service.call`. */
function reasonOf(error: unknown): string | undefined {
  const { reason, data } = error as { reason?: string; data?: { reason?: string } }
  return reason ?? data?.reason
}

function checkNotifications(sent: Notification[], wanted: NonNullable<ScenarioExpectation['notify']>): void {
  assert.deepEqual(
    sent.map(({ method }) => method),
    wanted.map(({ method }) => method),
    'the notifications of the call, and no others',
  )
  sent.forEach((one, index) => {
    assert.deepEqual({ ...one, ...wanted[index] }, one, `the notification ${one.method}`)
    notifications[one.method].parse(one.params)
  })
}

async function lastWritten({ service }: Pick<TestService, 'service'>): Promise<number> {
  const row = await service.app.db.first<{ written: number }>(sql`
    select coalesce(max(written), 0) as written from audit_log`)
  return row?.written ?? 0
}

const rowsAfter = ({ service }: Pick<TestService, 'service'>, written: number): Promise<Written[]> =>
  service.app.db.rows<Written>(sql`
    select written, event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip, metadata
    from audit_log where written > ${written} order by written`)
