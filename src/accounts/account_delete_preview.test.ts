import { beforeEach, expect, it } from 'vitest'
import { plantTokens } from '../../test/helpers/callers.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile({ roles: [{ name: 'clerk', grant_paths: ['admin'] }] })
const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)
let admin: TestAccount
beforeEach(async () => {
  await run(sql`delete from account`)
  admin = await test.account({ roles: ['admin', 'clerk'] })
})
const preview = (by: TestAccount, of?: TestAccount) =>
  by.client.account_delete_preview(of ? { account_id: of.id } : {})

it('counts what a deletion ends and leaves, of the own account or as admin of another', async () => {
  const ada = await test.account({ roles: ['clerk'] })
  await plantTokens(test, ada, ['1 hour', '2 hours'])
  await admin.client.role_grant_offer_create({ to_account_id: ada.id, role: 'clerk' })
  await ada.client.cell_create({ data: {} })
  const expected = {
    account_id: ada.id,
    username: ada.username,
    deleted: false,
    refusal: null,
    counts: { sessions: 1, tokens: 2, role_grants: 1, offers: 1, cells: 1 },
  }
  expect(await scenario(test, () => preview(ada))).toEqual(expected)
  expect(await preview(admin, ada)).toEqual(expected)
  await ada.client.account_delete()
  const after = { sessions: 0, tokens: 0, role_grants: 1, offers: 1, cells: 1 }
  expect(await preview(admin, ada)).toEqual({ ...expected, deleted: true, counts: after })
})

it('counts the sessions that the deletion then ends: none that has expired and is not yet removed', async () => {
  const ada = await test.account()
  const { session_id } = await test.sessions.create(ada.id)
  await run(
    sql`update auth_session set expires_at = date_trunc('milliseconds', now()) where id = ${session_id}`,
  )
  expect((await preview(ada)).counts.sessions).toBe(1)
  await ada.client.account_delete()
  const { events } = await admin.client.audit_log_list({ account_id: ada.id, event_type: 'account_delete' })
  expect(events.map(({ metadata }) => metadata?.sessions_revoked)).toEqual([1])
})

it('says why the deletion would be refused, as the deletion then does', async () => {
  const [ada, keeper, both] = [
    await test.account(),
    await test.account({ roles: ['keeper'] }),
    await test.account({ roles: ['admin', 'keeper'] }),
  ]
  const agrees = async (by: TestAccount, of: TestAccount, refusal: string | null) => {
    expect((await preview(by, of)).refusal).toBe(refusal)
    expect(await reasonOf(by.client.account_delete({ account_id: of.id }))).toBe(refusal ?? 'ok')
  }
  await agrees(admin, keeper, 'cannot_delete_keeper')
  await agrees(admin, both, 'cannot_delete_keeper')
  await agrees(admin, ada, null)
  await run(sql`delete from account where id = ${both.id}::uuid`)
  await agrees(admin, admin, 'cannot_delete_last_admin')
})

it('is for the own account, unless asked by an admin', async () => {
  const [ada, bob] = [await test.account(), await test.account()]
  const attempt = (by: TestAccount, id: string) =>
    reasonOf(by.client.account_delete_preview({ account_id: id }))
  expect(await attempt(ada, bob.id)).toBe('insufficient_permissions')
  expect(await attempt(ada, crypto.randomUUID())).toBe('insufficient_permissions')
  expect(await attempt(admin, crypto.randomUUID())).toBe('account_not_found')
  expect(await attempt(ada, ada.id.toUpperCase())).toBe('ok')
})
