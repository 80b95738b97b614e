import { expect, it } from 'vitest'
import { workOf } from '../../test/helpers/plans.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'

const tickets = 100_000

const test = await serviceForFile()
const { client, id } = await test.account({ roles: ['admin'] })
const { db } = test.service.app
const make = (purpose: string, from: number, to: number) =>
  db.run(sql`
    insert into account_ticket (purpose, token_hash, account_id, delivery, created_at, expires_at, used_at)
    select ${purpose}, n, ${id}::uuid, 'mailed', now() - n * interval '1 s', now(), now()
    from generate_series(${from}::int, ${to}::int) n`)
await make('password_reset', 1, tickets)
// The statistics know no other purpose.
await db.run(sql`analyze account_ticket`)
await make('email_verify', tickets + 1, tickets + 3)

it.each([
  ['email_verify', 3],
  ['invite', 0],
] as const)('a page of tickets of the purpose %s reads these alone', async (purpose, count) => {
  const { rows, scanned } = await workOf(test.databaseUrl, async () =>
    expect((await client.admin_ticket_list({ purpose })).tickets).toHaveLength(count),
  )
  expect(scanned).not.toContain('account_ticket')
  expect(rows.account_ticket).toBe(count)
})
