import { expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'

const test = await serviceForFile()
const admin = await test.account({ roles: ['admin'] })
const { db } = test.service.app

it('can be read on a full disk; rows that need room follow once there is some', async () => {
  const made = async () => (await admin.client.cell_create({ data: {} })).cell.id
  const listed = async () => {
    const { events } = await admin.client.audit_log_list({ event_type: 'cell_create' })
    return events.map(({ metadata }) => metadata?.cell_id)
  }
  const before = await made()
  expect(await listed()).toEqual([before])

  await db.run(sql`create function no_room() returns trigger language plpgsql as
    $$ begin raise 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$`)
  await db.run(
    sql`create trigger no_room before insert on audit_log for each statement execute function no_room()`,
  )
  const meanwhile = await made()
  expect(await listed()).toEqual([before])
  expect((await admin.client.cell_audit_list({ cell_id: before })).events).toHaveLength(1)
  const hour = {
    bucket_s: 3600,
    from: new Date(Date.now() - 7_200_000).toISOString(),
    to: new Date().toISOString(),
  }
  expect((await admin.client.audit_log_activity(hour)).buckets.length).toBeGreaterThan(0)

  await db.run(sql`drop trigger no_room on audit_log`)
  expect(await listed()).toEqual([meanwhile, before])
})
