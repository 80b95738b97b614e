import { describe, expect, it } from 'vitest'
import { sessionIn } from '../../test/helpers/account-routes.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario } from '../testing/index.ts'

const test = await serviceForFile()
const { sessions, operations, app } = test.service
const via = 'company_login'
const verify = (cookie: string) => test.client(cookie).account_verify()
const isDead = async (cookie: string) =>
  await expect(verify(cookie)).rejects.toMatchObject({ reason: 'authentication_required' })
describe('sessions.create', () => {
  it('opens a session for a person whom the application vouches for', async () => {
    const ada = await test.account()
    const target = { account_id: null, target_account_id: ada.id, ip: '10.1.2.3' }
    const made = await scenario(test, () => sessions.create({ account_id: ada.id, via, ip: '10.1.2.3' }), {
      audit: [{ event_type: 'login', outcome: 'success', ...target }],
    })
    expect(
      await app.db.one(sql`
        select metadata from audit_entries() where event_type = 'login' and target_account_id = ${ada.id}::uuid`),
    ).toEqual({ metadata: { session_id: made.session_id, methods: ['library'], via } })
    expect(made.set_cookie).toBe(`${made.cookie}; Max-Age=2592000; Path=/; HttpOnly; Secure; SameSite=Strict`)
    expect(sessionIn(made.cookie)).toBe(made.session_id)
    expect((await verify(made.cookie)).id).toBe(ada.id)
    const { sessions: own } = await ada.client.account_session_list()
    expect(own.find(({ id }) => id === made.session_id)).toMatchObject({
      ...{ methods: ['library'], strong: false, expires_at: made.expires_at },
    })
  })

  it('is strong only if a second factor was verified', async () => {
    const ada = await test.account()
    const { session_id } = await sessions.create({ account_id: ada.id, via, second_factor: true })
    expect(await app.db.one(sql`select strong from auth_session where id = ${session_id}`)).toEqual({
      strong: true,
    })
  })

  it('replaces the session that is presented, of the account or of another, and ends the oldest', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const own = await sessions.create({ account_id: ada.id, via, presented: `a=b; ${ada.cookie}` })
    await isDead(ada.cookie)
    const others = await sessions.create({ account_id: ada.id, via, presented: bob.cookie })
    await isDead(bob.cookie)
    for (let count = 3; count <= 5; count++) await sessions.create({ account_id: ada.id, via })
    await verify(own.cookie)
    await sessions.create({ account_id: ada.id, via, presented: 'svc_session=no.such.cookie' })
    await isDead(own.cookie)
    await verify(others.cookie)
  })

  it('refuses an account that is not live, and a word that the audit log would not take', async () => {
    const ada = await test.account()
    await operations.deleteAccount({ account_id: ada.id }, { via })
    for (const account_id of [ada.id, '11111111-1111-1111-1111-111111111111'])
      await expect(sessions.create({ account_id, via })).rejects.toMatchObject({
        data: { reason: 'account_not_found' },
      })
    await expect(sessions.create({ account_id: ada.id, via: 'with space' })).rejects.toThrow(TypeError)
  })

  it('racing the deletion of the account leaves no live session', async () => {
    for (let round = 0; round < 10; round++) {
      const ada = await test.account()
      const [made] = await Promise.allSettled([
        sessions.create({ account_id: ada.id, via }),
        operations.deleteAccount({ account_id: ada.id }, { via }),
      ])
      if (made.status === 'fulfilled') await isDead(made.value.cookie)
      else expect(made.reason).toMatchObject({ data: { reason: 'account_not_found' } })
    }
  })

  it('in a transaction that is rolled back leaves neither a session nor a success row', async () => {
    const ada = await test.account()
    let cookie = ''
    await expect(
      test.service.transaction({ event: 'login', via }, async (within) => {
        cookie = (
          await operations.createSession({ account_id: ada.id, presented: ada.cookie }, { via, within })
        ).cookie
        throw new Error('the application failed')
      }),
    ).rejects.toThrow('the application failed')
    await isDead(cookie)
    await verify(ada.cookie)
    const rows = await app.db.rows(sql`
      select 1 from audit_entries() where event_type = 'login' and outcome = 'success' and target_account_id = ${ada.id}::uuid`)
    expect(rows).toEqual([])
  })
})

it('the test kit signs in without a row, and strong if asked to', async () => {
  const ada = await test.account()
  const act = () => test.signIn(ada.id, { second_factor: true })
  const strong = await scenario(test, act, { audit: [] })
  const [newest] = (await strong.client.account_session_list()).sessions
  expect(newest).toMatchObject({ id: strong.session_id, strong: true })
})
