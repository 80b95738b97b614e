import { expect, it } from 'vitest'
import { exportFollower, faultsOf, follow, type Heard, listFollower } from '../../test/helpers/followers.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { testService } from '../testing/index.ts'

const test = await serviceForFile({ limit_admin_read: 'off' })
const admin = await test.account({ roles: ['admin'] })

it('followers hear every committed row once, in rising seq, while 12 writers commit in reverse or roll back', async () => {
  const followers = [listFollower(admin), exportFollower(test)]
  const found = await follow(test.databaseUrl, followers, { rows: 2000 })
  for (const { heard, faults } of found) {
    expect(faults).toEqual([])
    expect(heard).toBeGreaterThanOrEqual(2000)
  }
})

it('a follower that loses, repeats, swaps or invents rows is found out', () => {
  const names = ['1.0', '1.1', '2.0', '2.1']
  const rows: Heard[] = names.map((name, at) => ({ seq: at + 1, event_type: 'followed', metadata: { name } }))
  const [first, second, third, fourth] = rows as [Heard, Heard, Heard, Heard]
  const faults = (heard: Heard[]) => faultsOf(heard, new Set(names)).length
  expect(faults(rows)).toBe(0)
  for (const heard of [
    [first, second, third],
    [first, second, second, third, fourth],
    [first, third, second, fourth],
    [{ ...second, seq: 1 }, { ...first, seq: 2 }, third, fourth],
    [...rows, { ...fourth, seq: 5, metadata: { name: '3.0' } }],
  ])
    expect(faults(heard)).toBeGreaterThan(0)
})

it('a transaction that has drawn its place and not ended holds back nobody else’s rows, and comes later', async () => {
  const other = await rival(test.databaseUrl)
  const entry = (n: number) => JSON.stringify([{ event_type: 'held', outcome: 'success', metadata: { n } }])
  await other.begin('select audit_write($1)', [entry(1)])
  await test.service.app.db.run(sql`select audit_write(${entry(2)}::json)`)
  const shown = async (since_seq: number) =>
    (await admin.client.audit_log_list({ since_seq, event_type: 'held' })).events
  const [first] = await shown(0)
  expect(first?.metadata).toEqual({ n: 2 })
  await other.commit()
  await other.close()
  expect((await shown(first?.seq ?? 0)).map(({ metadata }) => metadata?.n)).toEqual([1])
})

it('a transaction without audit rows, in this database or another, holds back nothing', async () => {
  const elsewhere = await testService()
  const idle = await Promise.all([rival(test.databaseUrl), rival(elsewhere.databaseUrl)])
  for (const one of idle) {
    await one.begin('create table held_open (id int)')
    await one.query('select pg_current_xact_id()')
  }
  const { cell } = await admin.client.cell_create({ data: {} })
  const { events } = await admin.client.audit_log_list({ limit: 1 })
  expect(events[0]?.metadata).toEqual({ cell_id: cell.id })
  for (const one of idle) {
    await one.commit()
    await one.close()
  }
  await elsewhere.close()
})
