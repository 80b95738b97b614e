import { expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario } from '../testing/index.ts'

const test = await serviceForFile()

const verify = (cookie?: string, headers?: Record<string, string>) =>
  send(test, 'GET /verify', { cookie, ...(headers && { headers }) })
const identity = ['x-svc-account-id', 'x-svc-username']

it('answers 200 with an empty body and names the account in two headers', async () => {
  const ada = await test.account({ username: 'Ada_L'.toLowerCase() })
  const reply = await scenario(test, () => verify(ada.cookie))
  expect([reply.status, reply.text, reply.cookie]).toEqual([200, '', undefined])
  expect(reply.headers).toMatchObject({
    'content-length': '0',
    'cache-control': 'no-store',
    'x-svc-account-id': ada.id,
    'x-svc-username': 'ada_l',
  })
})

it('answers HEAD with the status and headers of GET', async () => {
  const ada = await test.account()
  const head = await send(test, 'HEAD /verify', { cookie: ada.cookie })
  expect(head.bare).toBe((await verify(ada.cookie)).bare)
  const anonymous = await send(test, 'HEAD /verify')
  expect([anonymous.status, anonymous.text]).toEqual([401, ''])
})

it('takes the identity headers from no request', async () => {
  const [ada, bob] = [await test.account(), await test.account()]
  const claimed = { 'X-Svc-Account-Id': bob.id, 'X-Svc-Username': bob.username }
  const reply = await verify(ada.cookie, claimed)
  expect(identity.map((name) => reply.headers[name])).toEqual([ada.id, ada.username])
  const anonymous = await verify(undefined, claimed)
  expect(anonymous).toMatchObject({ status: 401, json: { error: 'authentication_required' } })
  expect(identity.map((name) => anonymous.headers[name])).toEqual([undefined, undefined])
})

it('is the only route that sends these headers', async () => {
  const ada = await test.account()
  const others = [await send(test, 'GET /status', { cookie: ada.cookie })]
  others.push(await send(test, 'POST /logout', { cookie: ada.cookie }))
  for (const { status, headers } of others)
    expect([status, ...identity.map((name) => headers[name])]).toEqual([200, undefined, undefined])
})

it('works on an account with several actors or none, and ignores query and body', async () => {
  const ada = await test.account()
  await test.actor(ada.id, 'second')
  const { cookie } = ada
  expect((await send(test, 'GET /verify?acting=x&uri=%2Fprivate', { cookie })).status).toBe(200)
  expect((await send(test, 'GET /verify', { cookie, body: '{' })).status).toBe(200)
  await test.service.app.db.run(sql`update actor set deleted_at = now() where account_id = ${ada.id}::uuid`)
  expect((await verify(ada.cookie)).status).toBe(200)
})

it('is 401 from the moment the session, the account or its time is gone, and clears no good cookie', async () => {
  const [revoked, expired, deleted] = [await test.account(), await test.account(), await test.account()]
  const { db } = test.service.app
  await revoked.client.account_session_revoke_all()
  await db.run(
    sql`update auth_session set expires_at = date_trunc('milliseconds', now()) where account_id = ${expired.id}::uuid`,
  )
  await db.run(sql`update account set deleted_at = now() where id = ${deleted.id}::uuid`)
  for (const { cookie } of [revoked, expired, deleted]) {
    const reply = await verify(cookie)
    expect([reply.status, reply.text, reply.cookie]).toEqual([
      401,
      '{"error":"authentication_required"}',
      undefined,
    ])
  }
})

it('answers other verbs with 405', async () => {
  const ada = await test.account()
  const reply = await send(test, 'POST /verify', { cookie: ada.cookie })
  expect([reply.status, reply.headers.allow]).toEqual([405, 'GET, HEAD'])
})
