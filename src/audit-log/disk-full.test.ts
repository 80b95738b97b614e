import { afterEach, beforeEach, expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'

const test = await serviceForFile({ cell_tombstone_retention_days: 1 })
const admin = await test.account({ roles: ['admin'] })
const { db } = test.service.app
const made = async () => (await admin.client.cell_create({ data: {} })).cell.id

/** From now on nothing that is appended to the log finds room. */
const fill = async () => {
  await db.run(
    sql`create trigger no_room before insert on audit_log for each statement execute function no_room()`,
  )
}
const free = () => db.run(sql`drop trigger if exists no_room on audit_log`)
beforeEach(async () => {
  await db.run(sql`create or replace function no_room() returns trigger language plpgsql as
    $$ begin raise 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$`)
})
afterEach(async () => void (await free()))

it('can be read on a full disk; rows that need room follow once there is some', async () => {
  const listed = async () => {
    const { events } = await admin.client.audit_log_list({ event_type: 'cell_create' })
    return events.map(({ metadata }) => metadata?.cell_id)
  }
  const before = await made()
  expect(await listed()).toEqual([before])

  await fill()
  const meanwhile = await made()
  expect(await listed()).toEqual([before])
  expect((await admin.client.cell_audit_list({ cell_id: before })).events).toHaveLength(1)
  const hour = {
    bucket_s: 3600,
    from: new Date(Date.now() - 7_200_000).toISOString(),
    to: new Date().toISOString(),
  }
  expect((await admin.client.audit_log_activity(hour)).buckets.length).toBeGreaterThan(0)

  await free()
  expect(await listed()).toEqual([meanwhile, before])
})

it('keeps a deleted cell until its rows are numbered: nothing would remove those that come later', async () => {
  const id = await made()
  await admin.client.cell_delete({ cell_id: id })
  await db.run(sql`update cell set deleted_at = now() - interval '2 days' where id = ${id}::uuid`)
  const kept = async () => (await db.rows(sql`select from cell where id = ${id}::uuid`)).length

  await fill()
  await expect(test.service.operations.cleanUp()).rejects.toMatchObject({ reason: 'storage_full' })
  expect(await kept()).toBe(1)

  await free()
  await test.service.operations.cleanUp()
  expect(await kept()).toBe(0)
  expect(await db.rows(sql`select from audit_cell where cell_id = ${id}::uuid`)).toEqual([])
})
