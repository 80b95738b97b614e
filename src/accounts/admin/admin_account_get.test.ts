import { expect, it } from 'vitest'
import { plantTokens } from '../../../test/helpers/callers.ts'
import { cellRows } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { workOf } from '../../../test/helpers/plans.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { countedMax } from '../../db/bounded-count.ts'
import { sql } from '../../db/db.ts'
import { scenario } from '../../testing/index.ts'

const test = await serviceForFile({ roles: [{ name: 'clerk', grant_paths: ['admin'] }], max_sessions: 'off' })
const admin = await test.account({ roles: ['admin', 'clerk'] })
const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)
const get = (account_id: string) => admin.client.admin_account_get({ account_id })
const none = { sessions: 0, tokens: 0, role_grants: 0, offers: 0, cells: 0 }

it('is the entry of the list, with what belongs to the account and nothing of others', async () => {
  const ada = await test.account({ roles: ['clerk'] })
  const second = await test.actor(ada.id, 'second')
  await test.roleGrant({ actor_id: second, role: 'clerk' })
  const { session_id } = await test.sessions.create(ada.id)
  await run(
    sql`update auth_session set expires_at = date_trunc('milliseconds', now()) where id = ${session_id}`,
  )
  await plantTokens(test, ada, ['1 hour', '2 hours', '3 hours'])
  const offer = { to_account_id: ada.id, role: 'clerk' }
  await admin.client.role_grant_offer_create(offer)
  const { offer: taken } = await admin.client.role_grant_offer_create({ ...offer, to_actor_id: second })
  await admin.client.role_grant_offer_retract({ offer_id: taken.offer_id })
  const cell = async (acting: string) => (await ada.client.cell_create({ data: {}, acting })).cell.id
  const [gone] = [await cell(second), await cell(second), await cell(ada.actor_id)]
  await ada.client.cell_delete({ cell_id: gone, acting: second })
  const { counts, ...entry } = await scenario(test, () => get(ada.id.toUpperCase()))
  expect(counts).toEqual({ sessions: 1, tokens: 3, role_grants: 2, offers: 1, cells: 2 })
  const { accounts } = await admin.client.admin_account_list()
  expect(entry).toEqual(accounts.find(({ account }) => account.id === ada.id))
  expect((await get((await test.account()).id)).counts).toEqual({ ...none, sessions: 1 })
})

it('counts no role grant of a removed actor, as it lists none', async () => {
  const ada = await test.account({ roles: ['clerk'] })
  const second = await test.actor(ada.id, 'second')
  await test.roleGrant({ actor_id: second, role: 'clerk' })
  await test.service.operations.removeActor({ actor_id: second }, { via: 'test' })
  const { counts, role_grants } = await get(ada.id)
  expect(counts.role_grants).toBe(1)
  expect(role_grants).toHaveLength(1)
  expect((await ada.client.account_delete_preview()).counts.role_grants).toBe(1)
  await ada.client.account_delete()
  expect((await get(ada.id)).counts.role_grants).toBe(1)
})

it('shows a deleted account: its grants count, as they return with it', async () => {
  const ada = await test.account({ roles: ['clerk'] })
  await ada.client.account_delete()
  expect(await get(ada.id)).toMatchObject({
    account: { id: ada.id, deleted_by: ada.actor_id },
    counts: { ...none, role_grants: 1 },
  })
})

it('of an unknown account is account_not_found, and only admins get anything', async () => {
  const account_id = crypto.randomUUID()
  expect(await reasonOf(get(account_id))).toBe('account_not_found')
  const ada = await test.account({ roles: ['clerk'] })
  for (const id of [account_id, ada.id])
    expect(await reasonOf(ada.client.admin_account_get({ account_id: id }))).toBe('insufficient_permissions')
})

it(`counts to ${countedMax} and reads no more`, async () => {
  const ada = await test.account()
  const many = 20 * countedMax
  await cellRows(test, many, { created_by: sql`${ada.actor_id}::uuid` })
  await run(sql`
    insert into auth_session (id, account_id, expires_at)
    select encode(sha256(i::text::bytea), 'hex'), ${ada.id}::uuid, now() + interval '1 day'
    from generate_series(1, ${many}::int) i`)
  await run(sql`analyze cell, auth_session`)
  const { counts } = await get(ada.id)
  expect(counts).toEqual({ ...none, sessions: countedMax, cells: countedMax })
  const { rows, scanned } = await workOf(test.databaseUrl, () => get(ada.id))
  expect(scanned).toEqual([])
  for (const table of ['cell', 'auth_session']) expect(rows[table]).toBeLessThanOrEqual(countedMax + 1)
})
