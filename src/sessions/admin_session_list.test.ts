import { beforeEach, expect, it } from 'vitest'
import { sessionIn } from '../../test/helpers/account-routes.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

let admin: TestAccount
const test = await serviceForFile({ limit_login_ip: 'off' })
beforeEach(async () => {
  await run(sql`delete from account`)
  admin = await test.account({ roles: ['admin'] })
})

const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)
const idsOf = async (account_id?: string | null) => {
  const { sessions } = await admin.client.admin_session_list(account_id === undefined ? {} : { account_id })
  return sessions.map(({ id }) => id)
}

it('shows the sessions of all accounts, newest first, each with exactly its keys', async () => {
  const ada = await test.account()
  await test.client().account.login({ username: ada.username, password: ada.password })
  const { sessions, next_cursor } = await scenario(test, () => admin.client.admin_session_list())
  expect(sessions.map(({ username }) => username)).toEqual([ada.username, ada.username, admin.username])
  expect(sessions[1]).toEqual({
    id: sessionIn(ada.cookie),
    account_id: ada.id,
    username: ada.username,
    created_at: expect.stringMatching(/^.{23}Z$/),
    expires_at: expect.stringMatching(/^.{23}Z$/),
    authenticated_at: expect.stringMatching(/^.{23}Z$/),
    methods: ['library'],
    strong: false,
  })
  expect(next_cursor).toBeNull()
})

it('leaves expired ones out, at the instant of their end', async () => {
  const ada = await test.account()
  await run(
    sql`update auth_session set expires_at = date_trunc('milliseconds', now()) where account_id = ${ada.id}::uuid`,
  )
  expect(await idsOf()).toEqual([sessionIn(admin.cookie)])
})

it('shows those of one account on request; null asks for all, an unknown id for none', async () => {
  const ada = await test.account()
  const own = [sessionIn(ada.cookie)]
  expect(await idsOf(ada.id)).toEqual(own)
  expect(await idsOf(ada.id.toUpperCase())).toEqual(own)
  expect(await idsOf(null)).toHaveLength(2)
  expect(await idsOf('3b241101-e2bb-4255-8caf-4136c566a962')).toEqual([])
  for (const account_id of ['', 'ada', 7, [ada.id]])
    expect(await reasonOf(admin.client.admin_session_list({ account_id: account_id as string }))).toBe(
      'invalid_params',
    )
})

it('shows none of a deleted account, from the deletion on', async () => {
  const ada = await test.account()
  await ada.client.account_delete()
  expect(await idsOf(ada.id)).toEqual([])
  await admin.client.account_undelete({ account_id: ada.id })
  expect(await idsOf(ada.id)).toEqual([])
})
