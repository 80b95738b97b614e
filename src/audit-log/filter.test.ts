import { beforeEach, describe, expect, it } from 'vitest'
import { auditRows, clearAudit } from '../../test/helpers/audit-rows.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { type Sql, sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'

const test = await serviceForFile()
const admin = await test.account({ roles: ['admin'] })
beforeEach(() => clearAudit(test))

type Input = NonNullable<Parameters<TestAccount['client']['audit_log_list']>[0]>
const list = (input: Input) => admin.client.audit_log_list(input)
const shown = async (input: Input) => (await list(input)).events.map(({ metadata }) => metadata?.n)
const plant = (count: number, columns?: Parameters<typeof auditRows>[2]) => auditRows(test, count, columns)
const one = '00000000-0000-4000-8000-000000000001'
const two = '00000000-0000-4000-8000-000000000002'
const id = (condition: string, then: string): Sql =>
  sql`case when ${sql.raw(condition)} then ${then}::uuid end`

describe('audit_log_list', () => {
  it('by event_types shows rows of any of them, each once', async () => {
    await plant(8, { event_type: sql`(array['a', 'b', 'c', 'd'])[1 + i % 4]` })
    expect(await shown({ event_types: ['b', 'd', 'unknown', 'b'] })).toEqual([7, 5, 3, 1])
    expect(await shown({ event_types: ['c'], since_seq: 0 })).toEqual([2, 6])
    const { next_cursor: cursor } = await list({ event_types: ['d', 'b'], limit: 3 })
    expect(await shown({ event_types: ['b', 'd'], limit: 3, cursor })).toEqual([1])
    expect(await reasonOf(list({ event_types: ['b'], cursor }))).toBe('invalid_params')
  })

  it('by actor_id shows what it did and what was done to it, each row once', async () => {
    await plant(6, { actor_id: id('i <= 3', one), target_actor_id: id('i in (2, 5)', one) })
    expect(await shown({ actor_id: one.toUpperCase() })).toEqual([5, 3, 2, 1])
    expect(await shown({ actor_id: two })).toEqual([])
  })

  it('by cell_id shows every row that names the cell, as its timeline does, those of a deleted cell too', async () => {
    const { cell } = await admin.client.cell_create({ data: {} })
    const { cell: other } = await admin.client.cell_create({ data: {} })
    await admin.client.cell_field_set({ source_id: other.id, name: 'f', target_id: cell.id })
    await admin.client.cell_update({ cell_id: other.id, data: { a: 1 } })
    await admin.client.cell_delete({ cell_id: cell.id })
    const { events } = await list({ cell_id: cell.id })
    expect(events.map(({ event_type }) => event_type)).toEqual([
      'cell_delete',
      'cell_field_set',
      'cell_create',
    ])
    const timeline = await admin.client.cell_audit_list({ cell_id: cell.id })
    expect(events.map((event) => event.seq)).toEqual(timeline.events.map(({ seq }) => seq))
    expect((await list({ cell_id: cell.id, event_types: ['cell_delete'] })).events).toHaveLength(1)
    expect((await list({ cell_id: cell.id, outcome: 'failure' })).events).toEqual([])
  })

  it('combines all filters', async () => {
    await plant(64, {
      event_type: sql`case when i % 2 = 0 then 'a' else 'b' end`,
      outcome: sql`case when i / 2 % 2 = 0 then 'success' else 'failure' end`,
      account_id: id('i / 4 % 2 = 0', one),
      target_account_id: id('i / 4 % 2 = 1 and i < 8', one),
      actor_id: id('i / 8 % 2 = 0', two),
      cell_ids: sql`case when i / 16 % 2 = 0 then array[${one}::uuid] end`,
    })
    const filters: [Input, (i: number) => boolean][] = [
      [{ event_types: ['a'] }, (i) => i % 2 === 0],
      [{ outcome: 'success' }, (i) => Math.floor(i / 2) % 2 === 0],
      [{ account_id: one }, (i) => Math.floor(i / 4) % 2 === 0 || i < 8],
      [{ actor_id: two }, (i) => Math.floor(i / 8) % 2 === 0],
      [{ cell_id: one }, (i) => Math.floor(i / 16) % 2 === 0],
    ]
    for (let chosen = 0; chosen < 32; chosen++) {
      const used = filters.filter((_, nth) => chosen & (1 << nth))
      const expected = Array.from({ length: 64 }, (_, i) => 64 - i).filter((i) =>
        used.every(([, is]) => is(i)),
      )
      expect(await shown({ limit: 100, ...Object.assign({}, ...used.map(([input]) => input)) })).toEqual(
        expected,
      )
    }
  })

  it('by from and to shows the rows of that time, to excluded, whatever order they were written in', async () => {
    // Rows are up to half a minute late, as those of long transactions are.
    await plant(300, {
      created_at: sql`'2026-01-01T00:00:00Z'::timestamptz + (i - i * 7 % 30) * interval '1 s'`,
    })
    const at = (i: number) => i - ((i * 7) % 30)
    const time = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString()
    const all = Array.from({ length: 300 }, (_, i) => 300 - i)
    for (const [from, to] of [
      [100, 200],
      [0, 1],
      [-100, 500],
      [120, 121],
      [299, 400],
      [400, 500],
    ] as const) {
      const expected = all.filter((i) => at(i) >= from && at(i) < to)
      expect(await shown({ from: time(from), to: time(to), limit: 200 })).toEqual(expected.slice(0, 200))
      expect(await shown({ from: time(from), limit: 200 })).toEqual(
        all.filter((i) => at(i) >= from).slice(0, 200),
      )
      const before = all.filter((i) => at(i) < to)
      expect(await shown({ to: time(to), limit: 200 })).toEqual(before.slice(0, 200))
      expect(await shown({ to: time(to), since_seq: 0, limit: 200 })).toEqual(before.reverse().slice(0, 200))
    }
  })

  it('by from and to shows the rows of that time, also after the clock has jumped', async () => {
    // The clock is a day ahead for five rows, then a day behind for five.
    const jump = (i: number) => (i >= 100 && i < 105 ? 86_400 : i >= 105 && i < 110 ? -86_400 : 0)
    await plant(150, {
      created_at: sql`'2026-01-01T00:00:00Z'::timestamptz + (i + case when i between 100 and 104 then 86400
        when i between 105 and 109 then -86400 else 0 end) * interval '1 s'`,
    })
    const time = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString()
    const all = Array.from({ length: 150 }, (_, i) => 150 - i)
    expect(await shown({ limit: 200 })).toEqual(all) // Later reads find the rows numbered.
    for (const [from, to] of [
      [50, 140],
      [120, 300],
      [-3600, 3600],
      [-3600, 100_000],
      [-100_000, 10],
    ] as const) {
      const expected = all.filter((i) => i + jump(i) >= from && i + jump(i) < to)
      expect(await shown({ from: time(from), to: time(to), limit: 200 })).toEqual(expected)
      expect(await shown({ from: time(from), to: time(to), since_seq: 0, limit: 200 })).toEqual(
        expected.reverse(),
      )
    }
  })

  it.each<[string, Input]>([
    ['both event_type and event_types', { event_type: 'a', event_types: ['a'] }],
    ['no type', { event_types: [] }],
    ['51 types', { event_types: Array.from({ length: 51 }, (_, i) => `t${i}`) }],
    ['a bad type', { event_types: ['a b'] }],
    ['an empty period', { from: '2026-01-01T00:00:00Z', to: '2026-01-01T00:00:00Z' }],
    ['a day', { from: '2026-01-01' }],
    ['no id', { cell_id: 'x' }],
  ])('refuses %s', async (_what, input) => {
    expect(await reasonOf(list(input))).toBe('invalid_params')
  })
})

describe('audit_log_activity', () => {
  const began = '2026-01-01T00:00:00.000Z'
  const later = (seconds: number) => new Date(Date.parse(began) + seconds * 1000).toISOString()
  type Asked = Parameters<TestAccount['client']['audit_log_activity']>[0]
  const activity = async (input: Partial<Asked> = {}) =>
    (await admin.client.audit_log_activity({ from: began, to: later(60), bucket_s: 20, ...input })).buckets
  const counts = async (input?: Partial<Asked>) =>
    (await activity(input)).map(({ success, failure }) => [success, failure])

  it('counts successes and failures of each bucket, and of nothing outside', async () => {
    // One row a second, from 10 s before the period to 70 s into it.
    await plant(80, {
      created_at: sql`${began}::timestamptz + (i - 11) * interval '1 s'`,
      outcome: sql`case when i % 10 = 0 then 'failure' else 'success' end`,
      event_type: sql`case when i <= 40 then 'a' else 'b' end`,
      account_id: id('i % 4 = 0', one),
      target_account_id: id('i % 8 = 0', one),
    })
    expect(await activity()).toEqual([
      { from: began, success: 18, failure: 2, is_cut: false },
      { from: later(20), success: 18, failure: 2, is_cut: false },
      { from: later(40), success: 18, failure: 2, is_cut: false },
    ])
    expect(await counts({ to: later(50) })).toEqual([
      [18, 2],
      [18, 2],
      [9, 1],
    ])
    expect(await counts({ event_types: ['a', 'c'] })).toEqual([
      [18, 2],
      [9, 1],
      [0, 0],
    ])
    expect(await counts({ outcome: 'failure' })).toEqual([
      [0, 2],
      [0, 2],
      [0, 2],
    ])
    expect(await counts({ account_id: one })).toEqual([
      [4, 1],
      [4, 1],
      [4, 1],
    ])
    expect(await counts({ from: later(1000), to: later(1060) })).toEqual([
      [0, 0],
      [0, 0],
      [0, 0],
    ])
    expect(await counts({ from: later(-100), to: later(100), bucket_s: 200 })).toEqual([[72, 8]])
  })

  it('says where a bucket has more rows than it counts', async () => {
    await plant(8100, { created_at: sql`${began}::timestamptz + i * interval '1 ms'` })
    expect(await activity({ to: later(20), bucket_s: 4 })).toMatchObject([
      { success: 3999, is_cut: false },
      { success: 4000, is_cut: false },
      { success: 101, is_cut: false },
      { success: 0 },
      { success: 0 },
    ])
    expect(await activity({ bucket_s: 60 })).toEqual([
      { from: began, success: 8000, failure: 0, is_cut: true },
    ])
  })

  it('refuses more than 200 buckets, and an empty period', async () => {
    const attempt = (input: Partial<Asked>) => reasonOf(activity(input))
    expect(await attempt({ to: later(200), bucket_s: 1 })).toBe('ok')
    expect(await attempt({ to: later(200.5), bucket_s: 1 })).toBe('invalid_params')
    expect(await attempt({ to: began })).toBe('invalid_params')
    expect(await attempt({ bucket_s: 0 })).toBe('invalid_params')
  })

  it('is for admins alone', async () => {
    const { client } = await test.account()
    const call = client.audit_log_activity({ from: began, to: later(60), bucket_s: 20 })
    expect(await reasonOf(call)).toBe('insufficient_permissions')
  })
})
