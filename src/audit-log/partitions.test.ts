import { once } from 'node:events'
import pg from 'pg'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { auditRows, clearAudit } from '../../test/helpers/audit-rows.ts'
import { openStream } from '../../test/helpers/audit-streams.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { ownLocks } from '../../test/helpers/own-locks.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import type { AuditEvent } from '../audit/entry.ts'
import { sql } from '../db/db.ts'

const captured = capturedLog()
const test = await serviceForFile({ audit_retention_days: 30, audit_stream: true, log: captured.log })
const admin = await test.account({ roles: ['admin'] })
const ada = await test.account()
const db = () => test.service.app.db

/**
 * Rows per partition: the first numbering of a test makes a partition of this size, unless one holds the next number.
 */
const size = 100
beforeEach(async () => {
  await clearAudit(test)
  await db().run(sql`delete from audit_cell`)
  await db().run(sql.raw(await drops()))
  await db().run(sql`select audit_partition(seq + 1, ${size}::bigint) from audit_position`)
})
async function drops(): Promise<string> {
  const { text } = await db().one<{ text: string }>(sql`
    select string_agg(format('drop table audit_log_%1$s, audit_cell_%1$s', lower), ';') as text from audit_partitions()`)
  return `do $$ begin ${text.replaceAll(';', '; ')}; end $$`
}

const partitions = () =>
  db().rows<{ lower: number; upper: number }>(sql`select lower, upper from audit_partitions() order by lower`)
const position = () =>
  db().one<{ seq: number; removed_seq: number }>(sql`select seq, removed_seq from audit_position`)
const cleanUp = async (): Promise<number> => (await test.service.operations.cleanUp()).removed_audit_rows

async function exported(since_seq: number): Promise<AuditEvent[]> {
  const rows: AuditEvent[] = []
  for await (const row of await test.service.operations.exportAudit({ since_seq })) rows.push(row)
  return rows
}

async function walked(input: {
  since_seq?: number
  event_type?: string
  account_id?: string
  cell_id?: string
}) {
  const seen: AuditEvent[] = []
  for (let cursor: string | null = null; ; ) {
    const page = await admin.client.audit_log_list(
      cursor === null ? { ...input, limit: 70 } : { ...input, since_seq: undefined, cursor, limit: 70 },
    )
    seen.push(...page.events)
    cursor = page.next_cursor
    if (cursor === null) return seen
  }
}

const numbers = (events: readonly { seq: number }[]): number[] => events.map(({ seq }) => seq)
const rising = (from: number, count: number): number[] =>
  Array.from({ length: count }, (_, nth) => from + 1 + nth)

describe('rows over several partitions', () => {
  it('come to streams, lists, export and timelines once each, in order, while partitions are made', async () => {
    const { seq: start } = await position()
    const stream = await openStream(test, { cookie: admin.cookie }, `?acting=${admin.actor_id}`)
    const { cell } = await ada.client.cell_create({ data: {} })
    const updates = 3 * size
    for (let n = 0; n < updates; n++) await ada.client.cell_update({ cell_id: cell.id, data: { n } })
    const all = rising(start, updates + 1)
    expect((await stream.take(updates + 1)).map(({ id }) => id)).toEqual(all)
    stream.leave()
    expect((await partitions()).length).toBeGreaterThan(3)
    expect(numbers(await exported(start))).toEqual(all)
    expect(numbers(await walked({ since_seq: start }))).toEqual(all)
    expect(numbers(await walked({}))).toEqual(all.toReversed())
    expect(numbers(await walked({ event_type: 'cell_update' }))).toEqual(all.slice(1).toReversed())
    expect(numbers(await walked({ account_id: ada.id }))).toEqual(all.toReversed())
    expect(numbers(await walked({ cell_id: cell.id }))).toEqual(all.toReversed())
    const { events } = await ada.client.cell_audit_list({ cell_id: cell.id })
    expect(numbers(events)).toEqual(all.toReversed().slice(0, 50))
  })

  /** Makes the partitions of the next rows hold only 10. */
  const divideFinely = async (): Promise<number> => {
    const { seq } = await position()
    await db().run(sql.raw(await drops()))
    await db().run(sql`select audit_partition(seq + 1, 10::bigint) from audit_position`)
    return seq
  }

  it('are listed the same over more partitions than a page opens at once', async () => {
    const { cell } = await ada.client.cell_create({ data: {} })
    await admin.client.audit_log_list({ limit: 1 })
    const start = await divideFinely()
    const count = 500
    const someone = '00000000-0000-4000-8000-000000000001'
    // Common rows, some far apart, and a single one at each end.
    await auditRows(test, count, {
      event_type: sql`case when i in (1, 500) then 'rare' when i % 90 = 0 then 'sparse' else 'common' end`,
      account_id: sql`case when i % 100 = 1 then ${someone}::uuid end`,
      cell_ids: sql`case when i % 70 = 0 then array[${cell.id}::uuid] end`,
    })
    const at = (is: (nth: number) => boolean) => rising(start, count).filter((_, index) => is(index + 1))
    const filters: [Parameters<typeof walked>[0], number[]][] = [
      [{}, at(() => true)],
      [{ event_type: 'rare' }, at((nth) => nth === 1 || nth === 500)],
      [{ event_type: 'sparse' }, at((nth) => nth % 90 === 0)],
      [{ event_type: 'none' }, []],
      [{ account_id: someone }, at((nth) => nth % 100 === 1)],
      [{ cell_id: cell.id }, at((nth) => nth % 70 === 0)],
    ]
    for (const [filter, wanted] of filters) {
      expect(numbers(await walked(filter)), JSON.stringify(filter)).toEqual(wanted.toReversed())
      expect(numbers(await walked({ ...filter, since_seq: start })), JSON.stringify(filter)).toEqual(wanted)
    }
    expect(numbers(await walked({ since_seq: start + 13 }))).toEqual(rising(start + 13, count - 13))
    expect(numbers(await exported(start))).toEqual(rising(start, count))
    const { events } = await admin.client.audit_log_list({ offset: 450, limit: 20 })
    expect(numbers(events)).toEqual(rising(start, count).toReversed().slice(450, 470))
    const timeline = await ada.client.cell_audit_list({ cell_id: cell.id })
    expect(numbers(timeline.events)).toEqual(at((nth) => nth % 70 === 0).toReversed())
    expect((await partitions()).length).toBeGreaterThan(40)
  })

  it('are listed to the end, even if retention takes some of them twice while a page is read', async () => {
    const start = await divideFinely()
    await auditRows(test, 500, { event_type: sql`case when i % 10 = 5 then 'sparse' else 'common' end` })
    await admin.client.audit_log_list({ limit: 1 })
    const [one, other] = [new pg.Client(test.databaseUrl), new pg.Client(test.databaseUrl)]
    await Promise.all([one.connect(), other.connect()])
    onTestFinished(async () => void (await Promise.all([one.end(), other.end()])))
    const waiting = (table: string, count = 1) =>
      expect
        .poll(() =>
          db().rows(sql`
            select from ${sql.raw(ownLocks)} l where not granted and relation = ${table}::text::regclass`),
        )
        .toHaveLength(count)
    const remove = (from: number, to: number) =>
      db().run(sql`delete from audit_log where seq between ${start + from}::bigint and ${start + to}::bigint`)

    // Twice, the numbers have been found when rows go; the rows, which name accounts, have yet to be read.
    const { lower } = (await partitions())[20] as { lower: number }
    await one.query(`begin; lock table audit_log_${lower} in access exclusive mode`)
    const page = admin.client.audit_log_list({ since_seq: start, event_type: 'sparse', limit: 20 })
    await waiting(`audit_log_${lower}`)
    await other.query('begin; lock table account in access exclusive mode')
    await one.query('rollback')
    await waiting('account')
    await remove(80, 109)
    const locked = one.query('begin; lock table account in access exclusive mode')
    await waiting('account', 2)
    await other.query('rollback')
    await locked
    await waiting('account')
    await remove(110, 129)
    await one.query('rollback')

    const { events, next_cursor } = await page
    const left = rising(start, 500).filter((_, index) => index % 10 === 4 && (index < 79 || index > 128))
    expect(numbers(events)).toEqual(left.slice(0, 20))
    const rest = await admin.client.audit_log_list({ event_type: 'sparse', cursor: next_cursor as string })
    expect(numbers(rest.events)).toEqual(left.slice(20))
  })

  it('come to streams, even if they and their partition are made while a reading is planned', async () => {
    const { upper, lower } = (await partitions()).at(-1) as { upper: number; lower: number }
    await db().run(sql`update audit_position set seq = ${upper - 2}::bigint`)
    const stream = await openStream(test, { cookie: admin.cookie }, `?acting=${admin.actor_id}`)
    await stream.next()
    const [numberer, locker] = [new pg.Client(test.databaseUrl), new pg.Client(test.databaseUrl)]
    await Promise.all([numberer.connect(), locker.connect()])
    onTestFinished(async () => void (await Promise.all([numberer.end(), locker.end()])))
    const part = `audit_log_${lower}`
    const waitFor = (waiting: string) =>
      expect
        .poll(() => db().rows(sql.raw(`select from ${ownLocks} l where not granted and ${waiting}`)))
        .toHaveLength(1)

    // The last row of the partition is numbered; then the partition is locked before the stream reads from it.
    await numberer.query(`begin; select pg_advisory_xact_lock(hashtextextended('cellkeep audit_number', 0))`)
    await ada.client.cell_create({ data: {} })
    await waitFor(`locktype = 'advisory'`)
    await numberer.query('select audit_number()')
    const locked = locker.query(`begin; lock table ${part} in access exclusive mode`)
    await waitFor(`relation = '${part}'::regclass`)
    await numberer.query('commit')
    await locked
    await waitFor(`relation = '${part}'::regclass`)
    for (let n = 0; n < 3; n++) await ada.client.cell_create({ data: {} })
    for (const table of ['audit_log', 'audit_cell'])
      await numberer.query(`create table ${table}_${upper} (like ${table} including all);
        alter table ${table} attach partition ${table}_${upper} for values from (${upper}) to (${upper + size})`)
    const { rows } = await numberer.query<{ numbered: number }>('select audit_number() as numbered')
    expect(rows).toEqual([{ numbered: 3 }])
    await locker.query('rollback')

    expect((await stream.take(4)).map(({ id }) => id)).toEqual(rising(upper - 2, 4))
    stream.leave()
  })

  it('are numbered by several callers at once as by one', async () => {
    const { seq: start } = await position()
    await Promise.all(
      Array.from({ length: 12 }, async () => {
        for (let n = 0; n < 5; n++) {
          await auditRows(test, 9)
          await admin.client.audit_log_list({ limit: 1 })
        }
      }),
    )
    expect(numbers(await exported(start))).toEqual(rising(start, 12 * 5 * 9))
  })

  it('wait where no partition can be made, cost no call, and are listed once that is mended', async () => {
    const { upper } = (await partitions()).at(-1) as { upper: number }
    const { seq: start } = await position()
    await auditRows(test, upper - 1 - start)
    expect(numbers(await walked({}))).toHaveLength(upper - 1 - start)
    // A foreign table has the name of the next partition.
    await db().run(sql.raw(`create table audit_log_${upper} (n integer)`))
    const { cell } = await ada.client.cell_create({ data: {} })
    await ada.client.cell_delete({ cell_id: cell.id })
    expect(numbers(await walked({}))).toHaveLength(upper - 1 - start)
    expect(await exported(upper - 1)).toEqual([])
    await cleanUp()
    expect(captured.lines()).toContainEqual(
      expect.objectContaining({ level: 'warn', event: 'audit_partition' }),
    )
    expect((await position()).seq).toBe(upper - 1)
    await db().run(sql.raw(`drop table audit_log_${upper}`))
    const { events } = await admin.client.audit_log_list({ since_seq: upper - 1 })
    expect(events.map(({ seq, event_type }) => [seq, event_type])).toEqual([
      [upper, 'cell_create'],
      [upper + 1, 'cell_delete'],
    ])
  })
})

it('two empty partitions are there before they are needed, of the size that is set', async () => {
  const { audit_partition_rows } = test.service.app.config
  await cleanUp()
  const made = await partitions()
  expect(made).toHaveLength(3)
  expect(made.map(({ lower }) => lower)).toEqual([made[0]?.lower, made[0]?.upper, made[1]?.upper])
  expect(made.slice(1).map(({ upper }) => upper)).toEqual([audit_partition_rows, 2 * audit_partition_rows])
  await cleanUp()
  expect(await partitions()).toEqual(made)
})

describe('retention', () => {
  const cell = '00000000-0000-4000-8000-00000000000c'
  const plant = async (count: number, age: string) => {
    await auditRows(test, count, {
      created_at: sql`now() - ${age}::interval`,
      cell_ids: sql`array[${cell}::uuid]`,
    })
    await admin.client.audit_log_list({ limit: 1 })
  }
  const tables = async () =>
    (
      await db().rows<{ name: string }>(sql`
        select relname as name from pg_class where relkind = 'r' and relname ~ '^audit_(log|cell)_[0-9]+$' order by 1`)
    ).map(({ name }) => name)
  /** Fills the partition that holds the next number. */
  const fill = async (age: string): Promise<{ lower: number; upper: number }> => {
    await db().run(sql`select audit_partition(seq + 1, ${size}::bigint) from audit_position`)
    const { seq } = await position()
    const found = (await partitions()).find(({ lower, upper }) => lower <= seq + 1 && seq + 1 < upper)
    if (!found) throw new Error('no partition holds the next number')
    await plant(found.upper - 1 - seq, age)
    return found
  }

  it('drops partitions that are old as a whole, which a stream sees as one gap', async () => {
    const { seq: start } = await position()
    const [first, second] = [await fill('40 days'), await fill('31 days')]
    await plant(1, '1 day')
    const removed = second.upper - 1 - start
    expect(await cleanUp()).toBe(removed)
    expect(await position()).toMatchObject({ removed_seq: second.upper - 1 })
    for (const { lower } of [first, second])
      for (const name of [`audit_log_${lower}`, `audit_cell_${lower}`])
        expect(await tables()).not.toContain(name)
    const stream = await openStream(
      test,
      { cookie: admin.cookie },
      `?acting=${admin.actor_id}&after=${start}`,
    )
    const [gap, row] = await stream.take(2)
    stream.leave()
    expect([gap?.event, gap?.data]).toEqual(['gap', { after: start, resumed_after: second.upper - 1 }])
    expect(row?.id).toBe(second.upper)
    expect(numbers(await walked({}))).toEqual([second.upper])
    expect(numbers(await walked({ cell_id: cell }))).toEqual([second.upper])
    expect(await cleanUp()).toBe(0)
  })

  it('leaves a partition that will be old within a day, and deletes from others row by row', async () => {
    const { seq: start } = await position()
    await plant(3, '40 days')
    const soon = await fill('29 days 12 hours')
    await plant(2, '31 days')
    await plant(2, '1 day')
    expect(await cleanUp()).toBe(2)
    const kept = [...rising(start, soon.upper - 1 - start), soon.upper + 2, soon.upper + 3]
    expect(numbers(await exported(start))).toEqual(kept)
    await db().run(sql.raw(`update audit_log_${soon.lower} set created_at = created_at - interval '2 days'`))
    expect(await cleanUp()).toBe(soon.upper - 1 - start)
    expect(numbers(await exported(start))).toEqual([soon.upper + 2, soon.upper + 3])
  })

  it('continues what was interrupted, and touches nobody else’s table', async () => {
    const { lower } = await fill('40 days')
    await plant(1, '1 day')
    await db().run(sql.raw(`create table if not exists audit_log_20260101 (n integer)`))
    onTestFinished(async () => void (await db().run(sql.raw('drop table audit_log_20260101'))))
    for (const table of ['audit_log', 'audit_cell'])
      await db().run(
        sql.raw(`comment on table ${table}_${lower} is 'cellkeep: removed by audit_retention_days'`),
      )
    const [reader, other] = [new pg.Client(test.databaseUrl), new pg.Client(test.databaseUrl)]
    await Promise.all([reader.connect(), other.connect()])
    await reader.query('begin; select from audit_log limit 1')
    await other.query(`set lock_timeout = '100ms'`)
    await expect(
      other.query(`alter table audit_log detach partition audit_log_${lower} concurrently`),
    ).rejects.toThrow(/lock timeout/)
    await Promise.all([reader.end(), other.end(), once(reader, 'end')])
    expect(await tables()).toContain(`audit_log_${lower}`)
    expect(await cleanUp()).toBeGreaterThan(0)
    expect(await tables()).not.toContain(`audit_log_${lower}`)
    expect(await tables()).not.toContain(`audit_cell_${lower}`)
    expect(await tables()).toContain('audit_log_20260101')
  })
})
