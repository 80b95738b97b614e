import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { send, sessionIn } from '../../test/helpers/account-routes.ts'
import { tokenOf } from '../../test/helpers/callers.ts'
import { linkedAccounts } from '../../test/helpers/linked-accounts.ts'
import { mailIsDown, messagesTo } from '../../test/helpers/mailed.ts'
import { finish, signIn, start } from '../../test/helpers/oidc.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { openSocket } from '../../test/helpers/sockets.ts'
import { sql } from '../db/db.ts'
import { scenario, testService } from '../testing/index.ts'

const { corp, options, test, app, person, link, linkId, passwordless } = await linkedAccounts()
const age = ({ cookie }: { cookie: string }, seconds: number) =>
  app.db.run(sql`update auth_session set authenticated_at = now() - ${seconds}::int * interval '1 second'
    where id = ${sessionIn(cookie)}`)
const linked = { ok: true, created: false, linked: true }

describe('a signed-in person', () => {
  it('links an identity and signs in with it from then on', async () => {
    const [ada, who] = [await test.account(), person()]
    await scenario(test, () => link(ada, who), {
      audit: [{ event_type: 'factor_add', account_id: ada.id, target_account_id: ada.id }],
    })
    const [row] = await app.db.rows<{ metadata: object }>(sql`
      select metadata from audit_entries() where event_type = 'factor_add' and account_id = ${ada.id}::uuid`)
    expect(row?.metadata).toEqual({
      factor: 'link',
      factor_id: await linkId(ada),
      provider: 'corp',
      credential_type: 'session',
    })
    const { cookie } = await signIn(test, corp, who)
    expect((await test.client(cookie).account_verify()).id).toBe(ada.id)
  })

  it('keeps the session, and is told that the link already exists', async () => {
    const [ada, who] = [await test.account(), person()]
    const first = await link(ada, who)
    expect([first.status, first.json]).toEqual([200, linked])
    expect(first.headers['set-cookie']).toEqual([expect.stringMatching(/^svc_flow=;/)])
    expect((await link(ada, who)).json).toEqual({ ...linked, linked: false })
    expect((await ada.client.account_verify()).id).toBe(ada.id)
  })

  it('cannot link an identity of somebody else, live or deleted, or a second one of a provider', async () => {
    const [ada, eve, who] = [await test.account(), await test.account(), person()]
    await link(ada, who)
    const refused = [409, { error: 'oidc_linked_elsewhere' }]
    const answers = [await link(eve, who), await link(ada)]
    await ada.client.account_delete()
    answers.push(await link(eve, who))
    for (const { status, json } of answers) expect([status, json]).toEqual(refused)
    expect((await link(eve, person(), 'other')).json).toEqual(linked)
  })

  it('needs a fresh session to begin, and the same one to finish', async () => {
    const [ada, eve] = [await test.account(), await test.account()]
    const { url, flow } = await start(test, { intent: 'link' }, { cookie: ada.cookie })
    const expired = { status: 409, json: { error: 'flow_expired' } }
    expect(
      await finish(test, { flow, query: corp.authorize(url, person()), cookie: eve.cookie }),
    ).toMatchObject(expired)
    expect(await linkId(ada)).toBeUndefined()
    await age(ada, 601)
    const stale = await start(test, { intent: 'link' }, { cookie: ada.cookie })
    expect([stale.reply.status, stale.reply.json]).toEqual([
      403,
      { error: 'fresh_authentication_required', max_age: 600, methods: ['password'] },
    ])
    await age(ada, 599)
    const ended = await start(test, { intent: 'link' }, { cookie: ada.cookie })
    await send(test, 'POST /logout', { cookie: ada.cookie })
    const query = corp.authorize(ended.url, person())
    expect(await finish(test, { flow: ended.flow, query, cookie: ada.cookie })).toMatchObject(expired)
  })

  it('is needed: neither an anonymous caller nor an API token links', async () => {
    const { headers } = await tokenOf(test, await test.account())
    for (const intent of ['link', 'reauthenticate']) {
      const anonymous = await start(test, { intent })
      expect([anonymous.reply.status, anonymous.reply.json]).toEqual([
        401,
        { error: 'authentication_required' },
      ])
      expect((await start(test, { intent }, { headers })).reply.json).toMatchObject({
        error: 'credential_type_required',
      })
    }
  })
})

describe('reauthentication with a provider', () => {
  it('opens a fresh session in place of the one it began with', async () => {
    const { who, cookie, client, id, link_id } = await passwordless()
    await age({ cookie }, 700)
    expect(await reasonOf(client.account_link_remove({ link_id }))).toBe('fresh_authentication_required')
    const socket = await openSocket(test.url, { cookie })
    const closed = socket.closed
    const now = Math.floor(Date.now() / 1000)
    const { url, flow } = await start(test, { intent: 'reauthenticate' }, { cookie })
    expect(Object.fromEntries(new URL(url).searchParams)).toMatchObject({ prompt: 'login', max_age: '0' })
    const query = corp.authorize(url, { ...who, auth_time: now })
    const reply = await finish(test, { flow, query, cookie })
    expect([reply.status, reply.json]).toEqual([200, { ok: true, created: false, linked: false }])
    expect((await closed).code).toBe(4006)
    expect((await send(test, 'GET /status', { cookie })).status).toBe(401)
    const { sessions } = await test.client(reply.cookie).account_session_list()
    expect(sessions).toMatchObject([{ account_id: id, methods: ['oidc'] }])
    expect(await reasonOf(test.client(reply.cookie).account_link_remove({ link_id }))).toBe(
      'last_sign_in_method',
    )
  })

  it.each([
    ['somebody else', () => ({ ...person(), auth_time: Math.floor(Date.now() / 1000) })],
    [
      'somebody else, who has an account',
      async () => ({ ...(await passwordless()).who, auth_time: Math.floor(Date.now() / 1000) }),
    ],
    [
      'the right person, who signed in there an hour ago',
      (who: object) => ({ ...who, auth_time: Math.floor(Date.now() / 1000) - 3600 }),
    ],
    [
      'the right person, who signs in there in an hour',
      (who: object) => ({ ...who, auth_time: Math.floor(Date.now() / 1000) + 3600 }),
    ],
    ['the right person, without a word about when', (who: object) => who],
  ])('by %s is refused and leaves the session as it was', async (_what, then) => {
    const { who, cookie, client } = await passwordless()
    const eve = await signIn(test, corp, person())
    const { url, flow } = await start(test, { intent: 'reauthenticate' }, { cookie })
    const query = corp.authorize(url, (await then(who)) as typeof who)
    await scenario(
      test,
      async () => {
        const { status, json } = await finish(test, { flow, query, cookie })
        expect([status, json]).toEqual([401, { error: 'oidc_failed' }])
      },
      {
        audit: [
          { event_type: 'reauthenticate', outcome: 'failure', metadata: { reason: 'invalid_credentials' } },
        ],
      },
    )
    expect((await client.account_session_list()).sessions).toHaveLength(1)
    expect((await send(test, 'GET /status', { cookie: eve.cookie })).status).toBe(200)
  })
})

describe('account_link_remove', () => {
  it('removes a link, which lets nobody in afterwards', async () => {
    const [ada, who] = [await test.account(), person()]
    await link(ada, who)
    const link_id = await linkId(ada)
    await scenario(test, () => ada.client.account_link_remove({ link_id }), {
      audit: [{ event_type: 'factor_remove', account_id: ada.id, target_account_id: ada.id }],
    })
    const reply = await signIn(test, corp, who)
    expect(reply.json).toMatchObject({ created: true })
  })

  it('is told to the owner, as a new link is', async () => {
    await using mailing = await testService({ ...options, ...mailIsDown, database_url: test.databaseUrl })
    const ada = await test.account({ email: 'ada@x.io' })
    await app.db.run(sql`update account set email_verified = true where id = ${ada.id}::uuid`)
    await signIn(mailing, corp, person(), { intent: 'link', cookie: ada.cookie })
    await mailing.client(ada.cookie).account_link_remove({ link_id: await linkId(ada) })
    expect((await messagesTo(mailing, ada)).map(({ what }) => what)).toEqual(['link_added', 'link_removed'])
  })

  it('does nothing about unknown links and those of others', async () => {
    const [ada, eve] = [await test.account(), await passwordless()]
    for (const link_id of [randomUUID(), eve.link_id])
      expect(await ada.client.account_link_remove({ link_id })).toEqual({ ok: true, removed: false })
  })

  it('refuses the last way in, counting configured providers only', async () => {
    const { cookie, client, id, link_id } = await passwordless()
    expect(await reasonOf(client.account_link_remove({ link_id }))).toBe('last_sign_in_method')
    await link({ cookie }, person(), 'other')
    await using smaller = await testService({
      ...options,
      database_url: test.databaseUrl,
      oidc: [corp.entry()],
    })
    const there = smaller.client(cookie)
    expect(await reasonOf(there.account_link_remove({ link_id }))).toBe('last_sign_in_method')
    const gone = await linkId({ id }, 'other')
    expect(await there.account_link_remove({ link_id: gone })).toEqual({ ok: true, removed: true })
    await link({ cookie }, person(), 'other')
    await app.db.run(sql`delete from account_link where id = ${link_id}::uuid`)
    const last = await linkId({ id }, 'other')
    expect(await there.account_link_remove({ link_id: last })).toEqual({ ok: true, removed: true })
  })

  it('needs a fresh session', async () => {
    const ada = await test.account()
    await age(ada, 601)
    expect(await reasonOf(ada.client.account_link_remove({ link_id: randomUUID() }))).toBe(
      'fresh_authentication_required',
    )
    const { client } = await tokenOf(test, await test.account())
    expect(await reasonOf(client.account_link_remove({ link_id: randomUUID() }))).toBe(
      'credential_type_required',
    )
  })
})
