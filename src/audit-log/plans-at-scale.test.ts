import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditRows } from '../../test/helpers/audit-rows.ts'
import { type Work, workOf } from '../../test/helpers/plans.ts'
import { numberRows, seqEnd } from '../audit/numbering.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'
import { type AuditFilter, selection } from './selection.ts'

const rows = 50_000
const began = '2026-01-01T00:00:00.000Z'
const later = (seconds: number) => new Date(Date.parse(began) + seconds * 1000).toISOString()
const common = '00000000-0000-4000-8000-000000000001'
const some = '00000000-0000-4000-8000-000000000003'
const rare = '00000000-0000-4000-8000-000000000002'
let test: TestService
let admin: TestAccount
beforeAll(async () => {
  test = await testService({ statement_timeout_ms: 30_000 })
  admin = await test.account({ roles: ['admin'] })
  // Most belong to one account and one type; the rare rows are at the far end of every walk.
  await auditRows(test, rows, {
    event_type: sql`case when i <= 30 then 'role_grant_revoke' when i <= 60 then 'rare' when i % 8 = 0
      then 'role_grant_create' else 'common' end`,
    outcome: sql`case when i <= 30 or i % 20 = 0 then 'failure' else 'success' end`,
    account_id: sql`case when i <= 60 then ${rare}::uuid when i % 7 = 0 then ${some}::uuid else ${common}::uuid end`,
    actor_id: sql`case when i <= 60 then ${rare}::uuid else ${common}::uuid end`,
    target_actor_id: sql`case when i % 3 = 0 then ${common}::uuid when i = 5 then ${rare}::uuid end`,
    cell_ids: sql`case when i % 2 = 0 then array[${common}::uuid] when i = 5 then array[${rare}::uuid] end`,
    created_at: sql`${began}::timestamptz + i * interval '1 s'`,
    target_account_id: sql`case when i % 3 = 0 then ${common}::uuid when i = 5 then ${rare}::uuid end`,
  })
  await numberRows(test.service.app.db)
  const client = new pg.Client(test.databaseUrl)
  await client.connect()
  await client.query(`insert into account (username, password_hash)
    select 'other' || i, 'x' from generate_series(1, 5000) i`)
  await client.query(`insert into actor (account_id, name, name_key)
    select id, username, username from account where password_hash = 'x'`)
  await client.query('vacuum analyze audit_log, account, actor')
  await client.end()
})
afterAll(() => test.close())

type Input = NonNullable<Parameters<TestAccount['client']['audit_log_list']>[0]>
const work = (input: Input): Promise<Work> =>
  workOf(test.databaseUrl, () => admin.client.audit_log_list(input))
const rareOfCommon = { account_id: common, event_type: 'rare' }
const middle = async () => (await admin.client.audit_log_list({ since_seq: rows / 2, limit: 1 })).next_cursor

/** The entries that each branch reads, and the rows of the page. */
const atMost = (branches: number, size: number) => branches * (size + 1) + size + 1

describe(`among ${rows} audit rows`, () => {
  it.each<[what: string, input: Input, branches: number]>([
    ['newest first', {}, 1],
    ['oldest first', { since_seq: 0 }, 1],
    ['of a common type', { event_type: 'common' }, 1],
    ['of a rare type', { event_type: 'rare' }, 1],
    ['of an unknown type', { event_type: 'unknown' }, 1],
    ['of a common account', { account_id: common }, 2],
    ['of a rare account', { account_id: rare }, 2],
    ['of an unknown account, oldest first', { account_id: admin?.id ?? rare, since_seq: 0 }, 2],
    ['of a common actor', { actor_id: common }, 2],
    ['of a rare actor', { actor_id: rare }, 2],
    ['of an unknown actor, oldest first', { actor_id: rare.replace(/2$/, '3'), since_seq: 0 }, 2],
    ['of a common cell', { cell_id: common }, 1],
    ['of a rare cell', { cell_id: rare }, 1],
    ['of several types', { event_types: ['common', 'rare', 'unknown'] }, 3],
    ['of refusals', { outcome: 'failure' }, 1],
    ['of refusals of a common type', { outcome: 'failure', event_type: 'common' }, 1],
  ])(
    'a page %s reads its own entries and rows, and sorts or scans no more',
    async (_what, input, branches) => {
      for (const limit of [20, 200]) {
        const { scanned, rows: read } = await work({ ...input, limit })
        expect(scanned).toEqual([])
        expect(read.audit_log ?? 0).toBeLessThanOrEqual(atMost(branches, limit))
      }
    },
  )

  it.each<[what: string, input: Input]>([
    ['of a common account and a rare type', { account_id: common, event_type: 'rare' }],
    ['of a common account and several rare types', { account_id: common, event_types: ['rare', 'unknown'] }],
    ['of a common actor and a rare account', { actor_id: common, account_id: rare }],
    ['of a rare actor and a common account', { actor_id: rare, account_id: common }],
    ['of refusals of a rare account', { account_id: rare, outcome: 'failure' }],
    ['of refusals of a common account', { account_id: common, outcome: 'failure' }],
    ['of a common cell and a rare type', { cell_id: common, event_type: 'rare' }],
    ['of a rare cell and a common type', { cell_id: rare, event_type: 'common' }],
    ['of a common account and a rare type, oldest first', { ...rareOfCommon, since_seq: 0 }],
    ['of a common account and a rare type of a period', { ...rareOfCommon, from: later(-100) }],
  ])('a page %s reads the rows of its rarest filter', async (_what, input) => {
    const { scanned, rows: read } = await work({ ...input, limit: 50 })
    expect(scanned).toEqual([])
    expect(read.audit_log ?? 0).toBeLessThanOrEqual(2 * 60)
  })

  it('the search for the rarest filter reads a bounded number of rows, however few have the outcome', async () => {
    const all = { direction: 'desc', from: 0, to: seqEnd } as const
    const filters: AuditFilter[] = [
      { event_types: ['role_grant_create'], outcome: 'success' },
      { event_types: ['role_grant_create'], outcome: 'failure' },
      { outcome: 'failure' },
    ]
    for (const filter of filters) {
      const { scanned, rows: read } = await workOf(test.databaseUrl, () =>
        selection(test.service.app.db.readOnly, { ...filter, account_id: rare }, all),
      )
      expect(scanned).toEqual([])
      expect(read.audit_log).toBeLessThanOrEqual(5000 + 2 * 60)
    }
  })

  it.each<[what: string, input: Input]>([
    ['newest first', { from: later(20_000), to: later(20_100) }],
    ['oldest first', { from: later(20_000), since_seq: 0 }],
    ['before the log', { to: later(-100) }],
    ['of a type', { from: later(20_000), to: later(20_100), event_type: 'common' }],
  ])(
    'a page of a period, %s, examines no more than the period or a minute beside it',
    async (_what, input) => {
      const { scanned, rows: read } = await work({ ...input, limit: 20 })
      expect(scanned).toEqual([])
      expect(read.audit_log ?? 0).toBeLessThanOrEqual(atMost(1, 20) + 100)
    },
  )

  it('a page in the middle costs what the first one does', async () => {
    const cursor = await middle()
    const [start, inside] = [await work({ limit: 50 }), await work({ limit: 50, cursor })]
    expect(inside.rows.audit_log).toBeLessThanOrEqual(atMost(1, 50))
    expect(inside.pages).toBeLessThan(start.pages * 1.5 + 20)
  })

  it('the history of role grants reads two branches and nothing between', async () => {
    const { scanned, rows: read } = await workOf(test.databaseUrl, () =>
      admin.client.audit_log_role_grant_history({ limit: 20 }),
    )
    expect(scanned).toEqual([])
    expect(read.audit_log).toBeLessThanOrEqual(atMost(2, 20))
  })

  it('an offset reads entries, and only the rows of its page', async () => {
    const { scanned, rows: read } = await work({ account_id: common, offset: 10_000, limit: 20 })
    expect(scanned).toEqual([])
    expect(read.audit_log).toBeLessThanOrEqual(2 * 10_221 + 21)
  })

  it('activity examines a bounded number of rows per bucket, whatever the filter', async () => {
    const period = { from: later(0), to: later(rows), bucket_s: rows / 5 }
    const filters = [{}, { event_type: 'common' }, { account_id: common }, { cell_id: common }]
    for (const filter of filters) {
      const { scanned, rows: read } = await workOf(test.databaseUrl, () =>
        admin.client.audit_log_activity({ ...period, ...filter }),
      )
      expect(scanned).toEqual([])
      // Two branches of 8000 rows, the rows kept of them, and a hundred at each edge.
      expect(read.audit_log).toBeLessThanOrEqual(5 * 3 * 8000 + 6 * 100)
    }
    const combined = await workOf(test.databaseUrl, () =>
      admin.client.audit_log_activity({ ...period, ...rareOfCommon }),
    )
    expect(combined.scanned).toEqual([])
    expect(combined.rows.audit_log).toBeLessThanOrEqual(60 + 6 * 100)
  })

  it.each<Pick<Input, 'account_id' | 'actor_id' | 'event_type' | 'outcome'>>([
    { account_id: common, event_type: 'common' },
    { account_id: common, event_type: 'role_grant_create' },
    { account_id: common, outcome: 'failure' },
    { account_id: rare, outcome: 'failure' },
    { account_id: some, event_type: 'role_grant_create' },
    { actor_id: common, account_id: common, event_type: 'common' },
  ])('activity of %j in many buckets reads no row of another bucket', async (filter) => {
    const buckets = 50
    const { scanned, rows: read } = await workOf(test.databaseUrl, () =>
      admin.client.audit_log_activity({
        from: later(0),
        to: later(rows),
        bucket_s: rows / buckets,
        ...filter,
      }),
    )
    expect(scanned).toEqual([])
    expect(read.audit_log).toBeLessThanOrEqual(3 * rows + (buckets + 1) * 100)
  })
})
