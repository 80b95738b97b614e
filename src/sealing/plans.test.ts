import { expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { reseal } from './reseal.ts'

const messages = 3000

const test = await serviceForFile()
const { db, sealing } = test.service.app
await db.run(sql`
  insert into message_outbox (purpose, locale, state, next_attempt_at, expires_at, finished_at)
  select 'password_reset', 'en', 'sent', null, now(), now() from generate_series(1, ${messages}::int)`)
await db.run(sql`
  with made as (
    insert into account (username, password_hash) select 'user' || n, '-' from generate_series(1, ${messages}::int) n
    returning id
  )
  insert into account_totp (account_id, secret_sealed) select id, ${sealing?.prefix}::text || id from made`)

it.each(['none', 'fresh'])(
  'a search for texts under an older key reads neither all messages nor all secrets, with %s statistics',
  async (statistics) => {
    if (statistics === 'fresh') await db.run(sql`analyze message_outbox, account_totp`)
    const read = await db.transaction(async (tx) => {
      expect(await reseal({ db: tx, sealing })).toBe(0)
      return await tx.one<{ rows: number }>(sql`
        select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows from pg_stat_xact_user_tables
        where relname in ('message_outbox', 'account_totp')`)
    })
    expect(read.rows).toBeLessThan(10)
  },
)
