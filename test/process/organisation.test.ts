import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { createClient } from '../../src/client/client.ts'
import { type Reply, type SendOptions, send } from '../helpers/account-routes.ts'
import { foreignHashes, foreignPassword } from '../helpers/foreign-hashes.ts'
import { mailServer } from '../helpers/mail-server.ts'
import { clientSecret, finish, start } from '../helpers/oidc.ts'
import { reasonOf } from '../helpers/outcome.ts'
import { addPasskey, device, onLocalhost, signInWith } from '../helpers/passkeys.ts'
import { realProvider } from '../helpers/real-provider.ts'
import { bootstrap, runCellkeep, startServer, workspace } from '../helpers/server-process.ts'
import { codeOf } from '../helpers/totp.ts'

/** An organisation from its first start on, with a real server, mail server, provider and commands, and without SQL. */
const [space, mail, provider] = await Promise.all([
  workspace(),
  mailServer(),
  realProvider(`${onLocalhost.public_url}/admin/callback/corp`),
])
afterAll(async () => {
  provider.close()
  await mail.close()
  await space.remove()
})

const cwd = await space.make('organisation')
const corp = { id: 'corp', issuer: provider.issuer, client_id: 'cellkeep-test', client_secret: clientSecret }
const config = {
  ...onLocalhost,
  ...{ smtp_url: mail.url, mail_from: 'accounts@corp.example', require_second_factor: ['admin'] },
  oidc: [{ ...corp, userinfo: true, on_unknown: 'invite_only' }],
}
await writeFile(join(cwd, 'cellkeep.config.mjs'), `export default ${JSON.stringify(config)}`)
// The provider of this test uses http, which only development allows.
const env = { CELLKEEP_ENV: 'development' }
const server = await startServer(cwd, env)

const post = (path: string, body: object, options: SendOptions = {}): Promise<Reply> =>
  send(server, `POST ${path}`, { body, ...options })
const as = (cookie = '') => createClient({ url: server.url, headers: { cookie } })
const logIn = async (username: string, password: string) => await post('/login', { username, password })
/** The token of the newest link that was mailed to an address. */
async function linkTo(address: string, after = 0): Promise<string> {
  const found = () => mail.received.slice(after).findLast(({ to, link }) => link && to.includes(address))
  await expect.poll(found).toBeDefined()
  return found()?.link?.split('#ticket=')[1] ?? ''
}
const password = (name: string) => `the password of ${name}`
/** Accepts an invite by the link in its mail. */
async function accept(name: string): Promise<string> {
  const email = `${name}@corp.example`
  const body = { username: name, email, password: password(name), invite_token: await linkTo(email) }
  const made = await post('/signup', body)
  expect([name, made.status]).toEqual([name, 200])
  return made.cookie ?? ''
}

it('moves in, loses a password, a phone and a token, and reads all of it in the audit log', async () => {
  // The admin must add a second factor before anything else is allowed.
  await bootstrap(server)
  const ada = server.client
  expect(await reasonOf(ada.invite_create({ username: 'bob' }))).toBe('second_factor_enrolment_required')
  const { secret } = await ada.account_totp_enrol()
  await ada.account_totp_confirm({ code: codeOf(secret) })

  // Five people are invited by mail; nobody else gets in, not even with the right name and address.
  const names = ['bob', 'carol', 'dave', 'erin', 'frank']
  for (const name of names) await ada.invite_create({ username: name, email: `${name}@corp.example` })
  const thief = { username: 'bob', email: 'bob@corp.example', password: password('mallory') }
  expect((await post('/signup', thief)).status).toBe(403)
  const [, carol, dave, frank] = [
    await accept('bob'),
    as(await accept('carol')),
    as(await accept('dave')),
    as(await accept('frank')),
  ]

  // One joins through the provider.
  const { url, flow } = await start(server, { invite_token: await linkTo('erin@corp.example') })
  const entered = await finish(server, { flow, query: await provider.browse(url, 'erin') })
  expect(entered.json).toEqual({ ok: true, created: true, linked: false })

  // One signs in by passkey.
  const phone = device()
  await addPasskey({ client: frank }, phone)
  const { status, cookie } = await signInWith(server, phone)
  expect([status, (await as(cookie).account_verify()).username]).toEqual([200, 'frank'])

  // A forgotten password.
  const before = mail.received.length
  expect((await post('/recover', { identifier: 'bob@corp.example' })).status).toBe(200)
  const token = await linkTo('bob@corp.example', before)
  const fresh = 'a password that bob will remember'
  expect((await post('/reset', { token, password: fresh })).status).toBe(200)
  expect((await logIn('bob', password('bob'))).status).toBe(401)
  expect((await logIn('bob', fresh)).status).toBe(200)

  // A lost phone: the admin clears the second factor that was on it.
  const lost = await carol.account_totp_enrol()
  await carol.account_totp_confirm({ code: codeOf(lost.secret) })
  expect((await logIn('carol', password('carol'))).json).toMatchObject({ error: 'second_factor_required' })
  const { accounts } = await ada.admin_account_list({ query: 'carol' })
  const [found] = accounts
  await ada.admin_account_factors_clear({ account_id: found?.account.id ?? '' })
  expect((await logIn('carol', password('carol'))).status).toBe(200)

  // A stolen token, which its owner revokes.
  const stolen = await dave.account_token_create({
    name: 'deploy',
    scope: { kind: 'full' },
    lifetime: { kind: 'eternal' },
  })
  const thiefs = createClient({ url: server.url, token: stolen.token })
  expect((await thiefs.account_verify()).username).toBe('dave')
  await dave.account_token_revoke({ token_id: stolen.id })
  expect(await reasonOf(thiefs.account_verify())).toBe('authentication_required')

  // The users of the previous system are imported.
  const [, hash] = foreignHashes.find(([name]) => name.startsWith('bcrypt')) ?? []
  const users = ['grace', 'heidi'].map((username) => JSON.stringify({ username, password: hash }))
  await writeFile(join(cwd, 'users.jsonl'), users.join('\n'))
  expect((await runCellkeep(cwd, ['account', 'import', 'users.jsonl'], env)).code).toBe(0)
  expect((await logIn('grace', foreignPassword)).status).toBe(200)

  // The admin signs in with the second factor and reads what happened. The confirmation may have used up the current
  // step, so the code of the next one is sent, which is accepted early.
  const first = await logIn('ada', 'correct horse battery')
  expect(first.status).toBe(401)
  const second = await post('/second_factor', { totp: codeOf(secret, 1) }, { cookie: first.cookie ?? '' })
  expect(second.status).toBe(200)
  const { events } = await as(second.cookie).audit_log_list({ limit: 200 })
  const count = new Map<string, number>()
  for (const { event_type, outcome } of events) {
    const key = outcome === 'success' ? event_type : `${event_type} failed`
    count.set(key, (count.get(key) ?? 0) + 1)
  }
  expect(Object.fromEntries(count)).toEqual({
    ...{ bootstrap: 1, invite_create: 5, signup: 5, 'signup failed': 1, account_create: 2 },
    ...{ login: 5, 'login failed': 1, second_factor: 1, ticket_create: 6, password_reset: 1 },
    // Two TOTPs, each with recovery codes, and a passkey.
    ...{ factor_add: 5, factor_remove: 2, token_create: 1, token_revoke: 1 },
  })
  expect(JSON.stringify(events)).not.toContain(stolen.token)
})
