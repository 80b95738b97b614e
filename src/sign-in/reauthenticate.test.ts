import { describe, expect, it } from 'vitest'
import { send, sessionIn } from '../../test/helpers/account-routes.ts'
import { openStream } from '../../test/helpers/audit-streams.ts'
import { tokenOf } from '../../test/helpers/callers.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { openSocket } from '../../test/helpers/sockets.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile({ audit_stream: true })
const db = test.service.app.db
const again = ({ cookie, password }: Pick<TestAccount, 'cookie' | 'password'>, typed = password) =>
  send(test, 'POST /reauthenticate', { cookie, body: { password: typed } })

describe('proving the password again', () => {
  it('opens a fresh session in place of the presented one', async () => {
    const ada = await test.account()
    const other = await test.sessions.create(ada.id)
    await db.run(sql`update auth_session set authenticated_at = now() - interval '1 hour'
      where account_id = ${ada.id}::uuid`)
    let fresh = ''
    const envelope = { account_id: ada.id, actor_id: null, target_account_id: ada.id }
    await scenario(test, async () => (fresh = (await again(ada)).cookie as string), {
      audit: [
        { event_type: 'reauthenticate', ...envelope },
        {
          event_type: 'session_revoke',
          ...envelope,
          metadata: { session_id: sessionIn(ada.cookie), cause: 'rotated' },
        },
      ],
    })
    expect((await send(test, 'GET /verify', { cookie: ada.cookie })).status).toBe(401)
    const { sessions } = await test.client(fresh).account_session_list()
    expect(sessions.map(({ id }) => id).sort()).toEqual([sessionIn(fresh), other.session_id].sort())
    const mine = sessions.find(({ id }) => id === sessionIn(fresh))
    expect(mine).toMatchObject({ methods: ['password'], authenticated_at: mine?.created_at })
  })

  it('closes the sockets of the old session with 4006, and its stream', async () => {
    const ada = await test.account({ roles: ['admin'] })
    const socket = await openSocket(test.url, { cookie: ada.cookie })
    const stream = await openStream(test, { cookie: ada.cookie })
    await again(ada)
    expect((await socket.closed).code).toBe(4006)
    expect((await stream.rest()).at(-1)).toMatchObject({ event: 'close', data: { reason: 'revoked' } })
  })
})

describe('a wrong password', () => {
  it('is 401 and leaves both the session and a row', async () => {
    const ada = await test.account()
    await scenario(test, () => test.client(ada.cookie).account.reauthenticate({ password: 'wrong' }), {
      reason: 'invalid_credentials',
      audit: [
        {
          event_type: 'reauthenticate',
          outcome: 'failure',
          account_id: ada.id,
          target_account_id: ada.id,
          metadata: { reason: 'invalid_credentials' },
        },
      ],
    })
    expect((await send(test, 'GET /verify', { cookie: ada.cookie })).status).toBe(200)
  })

  it('is charged to the budget of /password, and the right one clears it', async () => {
    const ada = await test.account()
    // The address is known from then on, and has a budget of its own.
    const now = { ...ada, cookie: (await again(ada)).cookie as string }
    for (let i = 0; i < 9; i++) expect((await again(now, 'wrong')).status).toBe(401)
    now.cookie = (await again(now)).cookie as string
    for (let i = 0; i < 10; i++) expect((await again(now, 'wrong')).status).toBe(401)
    expect((await again(now)).status).toBe(429)
  })
})

it('takes a session only, of a page on an allowed origin', async () => {
  const ada = await test.account()
  const { headers } = await tokenOf(test, ada)
  const body = { password: ada.password }
  const byToken = await send(test, 'POST /reauthenticate', { headers, body })
  expect([byToken.status, byToken.json]).toMatchObject([403, { error: 'credential_type_required' }])
  const { cookie } = ada
  const foreign = { origin: 'https://evil.example' }
  const fromThere = await send(test, 'POST /reauthenticate', { cookie, headers: foreign, body })
  expect([fromThere.status, fromThere.json]).toEqual([403, { error: 'forbidden_origin' }])
})

it('a second factor is asked for again, and the old session stays until then', async () => {
  const ada = await test.account()
  await db.run(sql`insert into account_totp (account_id, secret_sealed, confirmed_at)
    values (${ada.id}::uuid, 'x', now())`)
  const reply = await again(ada)
  expect([reply.status, reply.json]).toMatchObject([401, { error: 'second_factor_required' }])
  expect(reply.cookie).toMatch(/^svc_flow=/)
  expect((await send(test, 'GET /verify', { cookie: ada.cookie })).status).toBe(200)
})

it('parallel proofs with one cookie leave one session', async () => {
  const ada = await test.account()
  const replies = await Promise.all(Array.from({ length: 5 }, () => again(ada)))
  expect(replies.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401, 401])
  const rows = await db.rows(sql`select from auth_session where account_id = ${ada.id}::uuid`)
  expect(rows).toHaveLength(1)
})
