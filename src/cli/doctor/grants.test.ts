import { expect, it } from 'vitest'
import { workOf } from '../../../test/helpers/plans.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import type { Opened } from '../with-service.ts'
import { grantFindings } from './grants.ts'

const test = await serviceForFile()
const { db } = test.service.app

it('finds undeclared roles among many grants without reading them', async () => {
  const { id } = await test.account()
  const actor_id = await test.actor(id, 'holder')
  await db.run(sql`
    insert into role_grant (actor_id, role, scope_kind, scope_id)
    select ${actor_id}::uuid, case when i = 1 then 'rare' else 'common' end, 'team', gen_random_uuid()
    from generate_series(1, 20000) i`)
  const gone = await test.actor(id, 'gone')
  await db.run(sql`insert into role_grant (actor_id, role) values (${gone}::uuid, 'unheld')`)
  await db.run(sql`update actor set deleted_at = now() where id = ${gone}::uuid`)
  for (const table of ['actor', 'role_grant']) await db.run(sql`analyze ${sql.raw(table)}`)
  const find = () => grantFindings(db, { parsed: { declarations: {} } } as Opened)
  const { rows, scanned } = await workOf(test.databaseUrl, async () =>
    expect(await find()).toMatchObject([{ what: expect.stringMatching(/: common, rare\.$/) }]),
  )
  expect(scanned).not.toContain('role_grant')
  expect(rows.role_grant).toBeLessThan(20)
})
