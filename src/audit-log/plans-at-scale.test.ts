import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditRows } from '../../test/helpers/audit-rows.ts'
import { type Work, workOf } from '../../test/helpers/plans.ts'
import { numberRows } from '../audit/entry.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'

const rows = 50_000
const common = '00000000-0000-4000-8000-000000000001'
const rare = '00000000-0000-4000-8000-000000000002'
let test: TestService
let admin: TestAccount
beforeAll(async () => {
  test = await testService({ statement_timeout_ms: 30_000 })
  admin = await test.account({ roles: ['admin'] })
  // Nine tenths belong to one account and one type; the rare rows are at the far end of every walk.
  await auditRows(test, rows, {
    event_type: sql`case when i <= 30 then 'role_grant_revoke' when i <= 60 then 'rare' when i % 10 = 0
      then 'role_grant_create' else 'common' end`,
    outcome: sql`case when i <= 30 then 'failure' else 'success' end`,
    account_id: sql`case when i <= 60 then ${rare}::uuid else ${common}::uuid end`,
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
}, 120_000)
afterAll(() => test.close())

type Input = NonNullable<Parameters<TestAccount['client']['audit_log_list']>[0]>
const work = (input: Input): Promise<Work> =>
  workOf(test.databaseUrl, () => admin.client.audit_log_list(input))
const middle = async () => (await admin.client.audit_log_list({ since_seq: rows / 2, limit: 1 })).next_cursor

/** Entries of each branch, and the rows of the page themselves. */
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
})
