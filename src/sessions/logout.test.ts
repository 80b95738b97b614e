import { expect, it } from 'vitest'
import { clearedCookie, send, sessionIn } from '../../test/helpers/account-routes.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario } from '../testing/index.ts'

const test = await serviceForFile()

const logout = (cookie?: string, body?: string) =>
  send(test, 'POST /logout', { cookie, ...(body && { body }) })
const refused = { status: 401, json: { error: 'authentication_required' } }

it('ends the present session alone, clears its cookie and names the account', async () => {
  const ada = await test.account()
  const body = { username: ada.username, password: ada.password }
  const other = await send(test, 'POST /login', { body })
  const reply = await scenario(test, () => logout(ada.cookie), {
    audit: [
      {
        event_type: 'logout',
        account_id: ada.id,
        actor_id: null,
        target_account_id: ada.id,
        target_actor_id: null,
        ip: '127.0.0.1',
        metadata: { session_id: sessionIn(ada.cookie) },
      },
    ],
  })
  expect(reply).toMatchObject({ status: 200, json: { ok: true, username: ada.username } })
  expect(reply.headers['set-cookie']).toEqual([clearedCookie])
  expect((await send(test, 'GET /verify', { cookie: ada.cookie })).status).toBe(401)
  expect((await send(test, 'GET /verify', { cookie: other.cookie })).status).toBe(200)
})

it('with a dead session is 401 and clears the cookie, without an audit row', async () => {
  const [revoked, expired, deleted] = [await test.account(), await test.account(), await test.account()]
  const { db } = test.service.app
  await revoked.client.account_session_revoke({ session_id: sessionIn(revoked.cookie) })
  await db.run(
    sql`update auth_session set expires_at = date_trunc('milliseconds', now()) where account_id = ${expired.id}::uuid`,
  )
  await db.run(sql`update account set deleted_at = now() where id = ${deleted.id}::uuid`)
  for (const { cookie } of [revoked, expired, deleted]) {
    const reply = await scenario(test, () => logout(cookie))
    expect(reply).toMatchObject(refused)
    expect(reply.headers['set-cookie']).toEqual([clearedCookie])
  }
})

it('with a broken cookie is 401 and clears it; without a cookie nothing is cleared', async () => {
  expect(await logout('svc_session=garbage')).toMatchObject({ ...refused, cookie: 'svc_session=' })
  expect(await logout('other=1')).toMatchObject({ ...refused, cookie: undefined })
  expect(await logout()).toMatchObject({ ...refused, cookie: undefined })
})

it('ignores a JSON body, but refuses a query', async () => {
  const ada = await test.account()
  const queried = await send(test, 'POST /logout?all=1', { cookie: ada.cookie })
  expect([queried.status, queried.json?.error, queried.cookie]).toEqual([
    400,
    'invalid_query_params',
    undefined,
  ])
  expect((await logout(ada.cookie, '{"ignored":true}')).status).toBe(200)
})

it('works on an account with several actors without choosing one', async () => {
  const ada = await test.account()
  await test.actor(ada.id, 'second')
  await scenario(test, () => logout(ada.cookie), { audit: [{ event_type: 'logout', actor_id: null }] })
})

it('ten times at once leaves one audit row', async () => {
  const ada = await test.account()
  const replies = await scenario(
    test,
    () => Promise.all(Array.from({ length: 10 }, () => logout(ada.cookie))),
    {
      audit: [{ event_type: 'logout' }],
    },
  )
  for (const { status, cookie } of replies)
    expect([[200, 401].includes(status), cookie]).toEqual([true, 'svc_session='])
})
