import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type { AuditRow } from '../audit/audit.ts'
import { sql } from '../db/db.ts'
import type { Notification } from '../notifications.ts'
import type { TestService } from './service.ts'

/** What a call must do; it must not do anything else. */
export type ScenarioExpectation = {
  /** The reason of the refusal; left out, the call must succeed. */
  reason?: string | undefined
  /** The audit rows it writes, in order. `event_type` is required; other keys are compared when given. */
  audit?: (Partial<AuditRow> & { event_type: string })[] | undefined
  /** The notifications it sends, in order. `method` is required; other keys are compared when given. */
  notify?: (Partial<Notification> & { method: string })[] | undefined
}

type Written = AuditRow & { written: number }

/**
 * Runs one call and checks its outcome, its notifications and its audit rows, whose metadata must have the
 * declared shape. An extra row fails like a missing one. Resolves to the result of the call, if it has one.
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
    await arrival(sent, expected.notify?.length ?? 0)
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
  checkNotifications(test, sent, expected.notify ?? [])
  return result
}

/** Waits until this many have arrived: those of another process, such as a command, come a moment after its end. */
async function arrival(sent: readonly Notification[], count: number): Promise<void> {
  for (let waits = 0; sent.length < count && waits < 500; waits++) await delay(10)
}

/** The reason of a client's `CellkeepError`, or of a `ServiceError` from `service.call`. */
function reasonOf(error: unknown): string | undefined {
  const { reason, data } = error as { reason?: string; data?: { reason?: string } }
  return reason ?? data?.reason
}

function checkNotifications(
  test: Pick<TestService, 'service'>,
  sent: Notification[],
  wanted: NonNullable<ScenarioExpectation['notify']>,
): void {
  assert.deepEqual(
    sent.map(({ method }) => method),
    wanted.map(({ method }) => method),
    'the notifications of the call, and no others',
  )
  sent.forEach((one, index) => {
    assert.deepEqual({ ...one, ...wanted[index] }, one, `the notification ${one.method}`)
    assert.equal(test.service.app.registry.notifications.flaw(one.method, one.params), undefined, one.method)
  })
}

async function lastWritten({ service }: Pick<TestService, 'service'>): Promise<number> {
  const row = await service.app.db.first<{ written: number }>(sql`
    select coalesce(max(written), 0) as written from audit_entries()`)
  return row?.written ?? 0
}

const rowsAfter = ({ service }: Pick<TestService, 'service'>, written: number): Promise<Written[]> =>
  service.app.db.rows<Written>(sql`
    select written, event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip, metadata
    from audit_entries() where written > ${written} order by written`)
