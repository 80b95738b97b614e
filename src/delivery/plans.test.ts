import { expect, it } from 'vitest'
import { workOf } from '../../test/helpers/plans.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'

const messages = 100_000

const test = await serviceForFile()
const { client } = await test.account({ roles: ['admin'] })
const { db } = test.service.app
const make = (state: string, count: number) =>
  db.run(sql`
    insert into message_outbox (purpose, locale, state, next_attempt_at, created_at, expires_at, finished_at)
    select 'password_reset', 'en', ${state}, null, now() - n * interval '1 s', now(), now()
    from generate_series(1, ${count}::int) n`)
await make('sent', messages)
// The statistics know no other state.
await db.run(sql`analyze message_outbox`)
await make('failed', 3)

it.each([
  ['failed', 3],
  ['queued', 0],
] as const)('a page of messages that are %s reads these alone', async (state, count) => {
  const { rows, scanned } = await workOf(test.databaseUrl, async () =>
    expect((await client.admin_message_list({ state })).messages).toHaveLength(count),
  )
  expect(scanned).toEqual([])
  expect(rows.message_outbox).toBe(count)
})
