import { beforeEach, describe, expect, it } from 'vitest'
import { auditRows, clearAudit } from '../../test/helpers/audit-rows.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { numberRows } from '../audit/numbering.ts'
import { sql } from '../db/db.ts'
import { scenario, testService } from '../testing/index.ts'

const captured = capturedLog()
const test = await serviceForFile({ audit_retention_days: 30, log: captured.log })
const admin = await test.account({ roles: ['admin'] })
const db = () => test.service.app.db
beforeEach(async () => {
  await db().run(sql`delete from audit_cell`)
  await clearAudit(test)
})

const cell = '00000000-0000-4000-8000-00000000000c'
const cleanUp = async () => (await test.service.operations.cleanUp()).removed_audit_rows
const plant = (count: number, age: string) =>
  auditRows(test, count, {
    created_at: sql`now() - ${age}::interval`,
    cell_ids: sql`case when i = 1 then array[${cell}::uuid, gen_random_uuid()] end`,
  })
const left = async () =>
  (await db().rows<{ seq: number }>(sql`select seq from audit_entries() order by seq`)).map(({ seq }) => seq)
const places = async () => (await db().rows(sql`select from audit_cell`)).length
const position = () =>
  db().first<{ seq: number; removed_seq: number }>(sql`select seq, removed_seq from audit_position`)

describe('retention of audit rows', () => {
  it('removes rows that old with their places in timelines, and keeps younger ones', async () => {
    await plant(3, '30 days')
    await plant(2, '29 days 23 hours')
    expect(await scenario(test, cleanUp)).toBe(3)
    expect([(await left()).length, await places()]).toEqual([2, 2])
    expect(await cleanUp()).toBe(0)
  })

  it('keeps the highest number removed, also when younger rows have smaller ones, and never lowers it', async () => {
    await plant(1, '1 day')
    await numberRows(db())
    await plant(4, '31 days')
    await cleanUp()
    const after = await position()
    expect(after?.removed_seq).toBe(after?.seq)
    // A row with a smaller number may become old later.
    await db().run(sql`update audit_log set created_at = now() - interval '40 days'`)
    expect(await cleanUp()).toBe(1)
    expect(await position()).toEqual(after)
    await auditRows(test, 1)
    const { events } = await admin.client.audit_log_list()
    expect(events[0]?.seq).toBe((after?.seq ?? 0) + 1)
  })

  it('goes in as many batches as it takes, and is logged with its count', async () => {
    await plant(2500, '31 days')
    expect(await cleanUp()).toBe(2500)
    expect(await left()).toEqual([])
    expect(captured.lines()).toContainEqual(
      expect.objectContaining({ level: 'info', removed_audit_rows: 2500, msg: 'old audit rows removed' }),
    )
  })

  it('removes no row that is not settled yet', async () => {
    const { databaseUrl } = test
    const other = await testService({ database_url: databaseUrl })
    await other.service.app.db.transaction(async (tx) => {
      await tx.run(sql`
        insert into audit_inbox (event_type, outcome, created_at) values ('open', 'success', now() - interval '40 days')`)
      expect(await cleanUp()).toBe(0)
    })
    await other.close()
    expect(await cleanUp()).toBe(1)
  })

  it('during a walk through the pages leaves no error, no repeated row, and the rest of the walk', async () => {
    await plant(30, '31 days')
    await numberRows(db())
    await plant(30, '1 day')
    const walk = async (input: { since_seq?: number }) => {
      const seen: number[] = []
      let page = await admin.client.audit_log_list({ ...input, limit: 7 })
      await cleanUp()
      for (;;) {
        seen.push(...page.events.map(({ seq }) => seq))
        if (page.next_cursor === null) return seen
        page = await admin.client.audit_log_list({ cursor: page.next_cursor, limit: 7 })
      }
    }
    const seen = await walk({ since_seq: 0 })
    expect(seen.slice(7)).toEqual(await left())
    expect(new Set(seen).size).toBe(seen.length)
    expect(await walk({})).toEqual((await left()).reverse())
  })

  it('is off unless it is set', async () => {
    await plant(1, '10000 days')
    const off = await testService({ database_url: test.databaseUrl })
    expect(await off.service.operations.cleanUp()).toMatchObject({ ran: true, removed_audit_rows: 0 })
    await off.close()
    expect(await cleanUp()).toBe(1)
  })
})
