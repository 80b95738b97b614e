import { afterAll, expect, it } from 'vitest'
import { finish, start, testProvider } from '../../test/helpers/oidc.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'

/** What changes while an identity waits for the account that has its e-mail, or for its invite. */

const corp = await testProvider()
afterAll(() => corp.close())
const test = await serviceForFile({
  limit_login_ip: null,
  limit_signup_open_ip: null,
  oidc: [corp.entry({ on_unknown: 'signup', auto_link: 'both_verified', allowed_domains: ['corp.example'] })],
})
const { operations } = test.service
await operations.setSettings({ open_signup: true }, { via: 'test' })
const other = await rival(test.databaseUrl)
afterAll(() => other.close())

/** A function that finishes a sign-in of the identity. */
async function begun(sub: string, email: string) {
  const { url, flow } = await start(test)
  const query = corp.authorize(url, { sub, email, email_verified: true })
  return async () => (await finish(test, { flow, query })).json
}

/** An account whose row the rival has locked, and two sign-ins to finish. */
async function waiting(name: string) {
  const email = `${name}@corp.example`
  const { id } = await test.account({ email })
  await operations.verifyEmail({ account_id: id }, { via: 'test' })
  const finishes = [await begun(name, email), await begun(name, email)] as const
  await other.begin('select from account where id = $1 for update', [id])
  return { id, finishes }
}

it('it signs in twice at once: the account is linked, and both get in', async () => {
  const { finishes } = await waiting('ada')
  const answers = Promise.all(finishes.map((act) => act()))
  await other.blocks(2)
  await other.commit()
  expect((await answers).map((answer) => answer?.linked).sort()).toEqual([false, true])
})

it('the account gets another e-mail: it is a stranger then', async () => {
  const { id, finishes } = await waiting('eve')
  await other.query(`update account set email = 'e@x.io', email_key = 'e@x.io' where id = $1`, [id])
  expect(await other.release(finishes[0]())).toEqual({ ok: true, created: true, linked: false })
})

it('it is invited and signs in twice at once: the second one finds the account of the first', async () => {
  await operations.setSettings({ open_signup: false }, { via: 'test' })
  const email = 'new@corp.example'
  const { id } = await operations.createInvite({ email }, { via: 'test' })
  const finishes = [await begun('new', email), await begun('new', email)]
  await other.begin('select from invite where id = $1 for update', [id])
  const answers = Promise.all(finishes.map((act) => act()))
  await other.blocks(2)
  await other.commit()
  expect((await answers).map((answer) => answer?.created).sort()).toEqual([false, true])
})

it('nothing has changed: the e-mail of a deleted account stays taken', async () => {
  await operations.setSettings({ open_signup: true }, { via: 'test' })
  const email = 'gone@corp.example'
  const { id } = await test.account({ email })
  await operations.deleteAccount({ account_id: id }, { via: 'test' })
  expect(await (await begun('gone', email))()).toEqual({ error: 'oidc_account_exists' })
})
