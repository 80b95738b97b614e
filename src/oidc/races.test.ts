import { afterAll, describe, expect, it } from 'vitest'
import { freshIp } from '../../test/helpers/account-routes.ts'
import { linkedAccounts } from '../../test/helpers/linked-accounts.ts'
import { finish, start } from '../../test/helpers/oidc.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { addPasskey, device } from '../../test/helpers/passkeys.ts'
import { rival } from '../../test/helpers/race.ts'
import { sql } from '../db/db.ts'
import { testService } from '../testing/index.ts'

const { corp, options, test, app, person, link, linkId, passwordless } = await linkedAccounts()
const node = await testService({ ...options, database_url: test.databaseUrl })
afterAll(() => node.close())
const linked = { ok: true, created: false, linked: true }

describe('what ends while a finish waits for the account', async () => {
  const other = await rival(test.databaseUrl)
  afterAll(() => other.close())
  const lock = (id: string) => other.begin('select from account where id = $1 for update', [id])

  it('its session: nothing is linked', async () => {
    const ada = await test.account()
    const { url, flow } = await start(test, { intent: 'link' }, { cookie: ada.cookie })
    const query = corp.authorize(url, person())
    await lock(ada.id)
    await other.query('delete from auth_session where account_id = $1', [ada.id])
    const reply = await other.release(finish(test, { flow, query, cookie: ada.cookie }))
    expect([reply.status, await linkId(ada)]).toEqual([409, undefined])
  })

  it('its session, while it unlinks: the link stays', async () => {
    const { client, id, link_id } = await passwordless()
    await lock(id)
    await other.query('delete from auth_session where account_id = $1', [id])
    expect(await other.release(reasonOf(client.account_link_remove({ link_id })))).toBe(
      'authentication_required',
    )
    expect(await linkId({ id })).toBe(link_id)
  })

  it('its link: nobody gets into the account', async () => {
    const { who, id } = await passwordless()
    const { url, flow } = await start(test)
    const query = corp.authorize(url, who)
    await lock(id)
    await other.query('delete from account_link where account_id = $1', [id])
    const reply = await other.release(finish(test, { flow, query }))
    expect(reply.json).toMatchObject({ created: true })
  })
})

describe('at the same moment, on two nodes', () => {
  const rounds = 20
  const repeat = async (race: () => Promise<void>) => {
    for (let round = 0; round < rounds; round += 10) await Promise.all(Array.from({ length: 10 }, race))
  }
  /** Begins on one node; the returned function finishes it there. */
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

  it('the last passkey and the last link are removed: one stays', () =>
    repeat(async () => {
      const { cookie, client, link_id } = await passwordless()
      const { passkey } = await addPasskey({ client }, device())
      const outcomes = await Promise.all([
        reasonOf(client.account_link_remove({ link_id })),
        reasonOf(node.client(cookie).account_passkey_remove({ passkey_id: passkey.id })),
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

  it('a dozen newcomers want one name: each gets an account, and the next number', async () => {
    const nodes = Array.from({ length: 12 }, (_, at) => (at % 2 === 0 ? test : node))
    const finishes = await Promise.all(
      nodes.map((on) => begun(on, { ...person(), preferred_username: 'newcomer' })),
    )
    const other = await rival(test.databaseUrl)
    await other.begin('lock table account in share mode')
    const answers = await other.release(Promise.all(finishes.map((act) => act())))
    await other.close()
    expect(answers).toEqual(answers.map(() => ({ ok: true, created: true, linked: false })))
    const names = await app.db.rows<{ username: string }>(sql`
      select username from account where username ~ '^newcomer(-|$)' order by length(username), username`)
    const numbered = Array.from({ length: 11 }, (_, at) => `newcomer-${at + 2}`)
    expect(names.map(({ username }) => username)).toEqual(['newcomer', ...numbered])
  })

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
