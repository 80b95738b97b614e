import { expect, it } from 'vitest'
import { workOf } from '../../test/helpers/plans.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'

const accounts = 3000

const test = await serviceForFile()
const { client } = await test.account()

it('a caller is read without the actors of others, even while no table has statistics', async () => {
  await test.service.app.db.run(sql`
    with made as (
      insert into account (username, password_hash) select 'other' || n, '-' from generate_series(1, ${accounts}::int) n
      returning id, username
    )
    insert into actor (account_id, name, name_key) select id, username, username from made`)
  // Refused by its role, after the caller was read.
  const { rows } = await workOf(test.databaseUrl, () => client.try.audit_log_list())
  expect(rows).toMatchObject({ auth_session: 1, account: 1 })
  expect(rows.actor).toBeLessThan(5)
})

it('a caller is read without the grants of others, even if the statistics know only ended ones', async () => {
  const { db } = test.service.app
  const grants = (role: string, isEnded: boolean) =>
    db.run(sql`
      insert into role_grant (actor_id, role, revoked_at)
      select id, ${role}, ${isEnded ? sql`now()` : sql`null`} from actor where name like 'other%'`)
  await grants('former', true)
  await db.run(sql`analyze role_grant`)
  await grants('present', false)
  const { rows } = await workOf(test.databaseUrl, () => client.try.audit_log_list())
  expect(rows.role_grant ?? 0).toBeLessThan(5)
})
