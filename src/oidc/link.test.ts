import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, it } from 'vitest'
import { freshIp, send, sessionIn } from '../../test/helpers/account-routes.ts'
import { tokenOf } from '../../test/helpers/callers.ts'
import { finish, signIn, start, testProvider } from '../../test/helpers/oidc.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { openSocket } from '../../test/helpers/sockets.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount, testService } from '../testing/index.ts'

const [corp, other] = await Promise.all([testProvider(), testProvider('other')])
afterAll(() => Promise.all([corp.close(), other.close()]))
const options = {
  limit_login_ip: null,
  limit_signup_open_ip: null,
  limit_credential: null,
  oidc: [corp.entry({ on_unknown: 'signup' }), other.entry()],
} as const
const test = await serviceForFile(options)
const node = await testService({ ...options, database_url: test.databaseUrl })
afterAll(() => node.close())
const { app, operations } = test.service
await operations.setSettings({ open_signup: true }, { via: 'test' })

let count = 0
const person = () => ({ sub: `subject ${++count}`, preferred_username: `person-${count}` })
const link = (account: Pick<TestAccount, 'cookie'>, who = person(), provider = 'corp') =>
  signIn(test, provider === 'corp' ? corp : other, who, { intent: 'link', provider, cookie: account.cookie })
const linkId = async ({ id }: Pick<TestAccount, 'id'>, provider = 'corp') =>
  (
    await app.db.rows<{ id: string }>(sql`
      select id from account_link where account_id = ${id}::uuid and provider = ${provider}`)
  )[0]?.id as string
/** An account that has only its link to sign in with. */
async function passwordless() {
  const who = person()
  const { cookie = '' } = await signIn(test, corp, who)
  const client = test.client(cookie)
  const { id } = await client.account_verify()
  return { who, cookie, client, id, link_id: await linkId({ id }) }
}
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
      select metadata from audit_log where event_type = 'factor_add' and account_id = ${ada.id}::uuid`)
    expect(row?.metadata).toEqual({
      factor: 'link',
      factor_id: await linkId(ada),
      provider: 'corp',
      credential_type: 'session',
    })
    const { cookie } = await signIn(test, corp, who)
    expect((await test.client(cookie).account_verify()).id).toBe(ada.id)
  })

  it('keeps the session, and hears that a link is made already', async () => {
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

  it('is needed: nobody, and no API token, links', async () => {
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
      'the right person, who signed in there an hour ago',
      (who: object) => ({ ...who, auth_time: Math.floor(Date.now() / 1000) - 3600 }),
    ],
    ['the right person, without a word about when', (who: object) => who],
  ])('by %s is refused and leaves the session as it was', async (_what, then) => {
    const { who, cookie, client } = await passwordless()
    const eve = await signIn(test, corp, person())
    const { url, flow } = await start(test, { intent: 'reauthenticate' }, { cookie })
    const query = corp.authorize(url, then(who) as typeof who)
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

describe('at the same moment, on two nodes', () => {
  const rounds = 50
  const repeat = async (race: () => Promise<void>) => {
    for (let round = 0; round < rounds; round += 10) await Promise.all(Array.from({ length: 10 }, race))
  }
  /** Begins on one node and returns what finishes it there. */
  const begun = async (on: { url: string }, who: object, { intent = 'sign_in', cookie = '' } = {}) => {
    const { url, flow } = await start(on, { intent }, { ip: freshIp(), ...(cookie && { cookie }) })
    const query = corp.authorize(url, who as { sub: string })
    return async () => (await finish(on, { flow, query, cookie })).json
  }

  it('two removals of the last two ways in: one stays', () =>
    repeat(async () => {
      const { cookie, client, id, link_id } = await passwordless()
      await link({ cookie }, person(), 'other')
      const gone = await linkId({ id }, 'other')
      const outcomes = await Promise.all([
        reasonOf(client.account_link_remove({ link_id })),
        reasonOf(node.client(cookie).account_link_remove({ link_id: gone })),
      ])
      expect(outcomes.sort()).toEqual(['last_sign_in_method', 'ok'])
    }))

  it('two accounts link one identity: one gets it', () =>
    repeat(async () => {
      const [ada, eve, who] = [await test.account(), await test.account(), person()]
      const finishes = [
        await begun(test, who, { intent: 'link', cookie: ada.cookie }),
        await begun(node, who, { intent: 'link', cookie: eve.cookie }),
      ]
      const answers = await Promise.all(finishes.map((act) => act()))
      expect(answers).toContainEqual(linked)
      expect(answers).toContainEqual({ error: 'oidc_linked_elsewhere' })
    }))

  it('an unknown identity signs in twice: one account', () =>
    repeat(async () => {
      const who = person()
      const finishes = [await begun(test, who), await begun(node, who)]
      const answers = await Promise.all(finishes.map((act) => act()))
      expect(answers.map((answer) => answer?.created).sort()).toEqual([false, true])
    }))

  it('a link is removed while its identity signs in: signed in before, or a new account after', () =>
    repeat(async () => {
      const [ada, who] = [await test.account(), person()]
      await link(ada, who)
      const link_id = await linkId(ada)
      const act = await begun(node, who)
      const [removed, answer] = await Promise.all([
        reasonOf(ada.client.account_link_remove({ link_id })),
        act(),
      ])
      expect(removed).toBe('ok')
      expect(answer).toMatchObject({ ok: true, linked: false })
    }))

  it('an account is deleted while its identity signs in: no session is left', () =>
    repeat(async () => {
      const [ada, who] = [await test.account(), person()]
      await link(ada, who)
      const act = await begun(node, who)
      const [deleted, answer] = await Promise.all([reasonOf(ada.client.account_delete()), act()])
      expect(deleted).toBe('ok')
      if (answer?.error) expect(answer).toEqual({ error: 'oidc_unknown_account' })
      const left = await app.db.rows(sql`select from auth_session where account_id = ${ada.id}::uuid`)
      expect(left).toEqual([])
    }))
})
