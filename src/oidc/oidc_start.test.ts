import { randomUUID } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { finish, signIn, start, testProvider } from '../../test/helpers/oidc.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { testService } from '../testing/index.ts'

const corp = await testProvider()
afterAll(() => corp.close())
const test = await serviceForFile({ oidc: [corp.entry()] })
const { app } = test.service

it('asks the provider for a code, once, bound to the browser', async () => {
  const { reply, url, flow } = await start(test)
  expect([reply.status, Object.keys(reply.json ?? {})]).toEqual([200, ['url']])
  expect(reply.headers['set-cookie']).toEqual([
    expect.stringMatching(/^svc_flow=[\w-]{43}; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Strict$/),
  ])
  const asked = Object.fromEntries(new URL(url).searchParams)
  expect(asked).toEqual({
    client_id: 'cellkeep-test',
    response_type: 'code',
    scope: 'openid email profile',
    redirect_uri: `${app.config.oidc_redirect_url}/corp`,
    code_challenge_method: 'S256',
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    state: expect.stringMatching(/^[\w-]{43}$/),
    nonce: expect.stringMatching(/^[\w-]{43}$/),
  })
  const stored = JSON.stringify(await app.db.rows(sql`select * from sign_in_flow`))
  for (const secret of [asked.state, asked.nonce, flow?.split('=')[1]]) expect(stored).not.toContain(secret)
})

it('a provider that is not configured is 404', async () => {
  const { reply } = await start(test, { provider: 'nobody' })
  expect([reply.status, reply.json]).toEqual([404, { error: 'provider_not_found' }])
})

it('begins nothing for a session that ends meanwhile', async () => {
  const other = await rival(test.databaseUrl)
  for (const intent of ['link', 'reauthenticate']) {
    const ada = await test.account()
    await other.begin('select from account where id = $1 for no key update', [ada.id])
    await other.query(`delete from auth_session where account_id = $1`, [ada.id])
    const { reply } = await other.release(start(test, { intent }, { cookie: ada.cookie }))
    expect([reply.status, reply.json]).toEqual([401, { error: 'authentication_required' }])
    expect(reply.headers['set-cookie']).toBeUndefined()
    expect(await app.db.rows(sql`select from sign_in_flow where account_id = ${ada.id}::uuid`)).toEqual([])
  }
  await other.close()
})

it('the metadata are read once, not for each start', async () => {
  await Promise.all([start(test), start(test), start(test)])
  expect(corp.asked).toEqual(['/.well-known/openid-configuration'])
})

it('start and finish are refused to pages of other origins', async () => {
  const headers = { origin: 'https://evil.example' }
  const { reply } = await start(test, {}, { headers })
  const finished = await finish(test, { flow: undefined, query: 'x' }, { headers })
  for (const { status, json } of [reply, finished])
    expect([status, json]).toEqual([403, { error: 'forbidden_origin' }])
})

it('an address may begin only so many, and failed or refused finishes count as failed logins', async () => {
  await using limited = await testService({
    limit_flow_ip: '4/900',
    limit_login_ip: '2/900',
    oidc: [corp.entry()],
  })
  const person = { sub: 'nobody' }
  const failed = await start(limited)
  expect((await finish(limited, { ...failed, query: 'x=y' })).status).toBe(401)
  const replies = [await signIn(limited, corp, person), await signIn(limited, corp, person)]
  expect(replies.map(({ status }) => status)).toEqual([403, 429])
  expect((await start(limited)).reply.status).toBe(200)
  expect((await start(limited)).reply.json).toMatchObject({ error: 'rate_limit_exceeded' })
})

it('without a provider, the routes and the method are not there', async () => {
  await using bare = await testService()
  for (const route of ['POST /oidc_start', 'POST /oidc_finish'])
    expect((await send(bare, route, { body: {} })).json).toEqual({ error: 'not_found' })
  const { client } = await bare.account()
  await expect(client.account_link_remove({ link_id: randomUUID() })).rejects.toMatchObject({
    reason: 'method_not_found',
  })
})
