import { afterAll, describe, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { mailIsDown } from '../../test/helpers/mailed.ts'
import { finish, start, testProvider } from '../../test/helpers/oidc.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { addPasskey, device, onLocalhost } from '../../test/helpers/passkeys.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { codeOf } from '../../test/helpers/totp.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, testService } from '../testing/index.ts'

const corp = await testProvider()
afterAll(() => corp.close())
const test = await serviceForFile({
  ...mailIsDown,
  ...onLocalhost,
  username_change: 'self',
  oidc: [corp.entry()],
})
const { db } = test.service.app
const other = await rival(test.databaseUrl)
afterAll(() => other.close())

const addTotp = `insert into account_totp (account_id, secret_sealed, confirmed_at) values ($1, 'x', now())`
/** Another session of the account adds a second factor and is about to commit it. */
async function adding(id: string): Promise<void> {
  await other.begin('select from account where id = $1 for no key update', [id])
  await other.query(addTotp, [id])
}

/** What an admin may change of how somebody else signs in. */
const changesOf = ({
  id: account_id,
}: TestAccount): ((client: TestAccount['client']) => Promise<unknown>)[] => [
  (client) => client.admin_account_reset_link_create({ account_id, reveal: true }),
  (client) => client.admin_account_email_set({ account_id, email: 'mallory@x.io' }),
  (client) => client.admin_account_username_set({ account_id, username: 'mallory' }),
  (client) => client.admin_account_factors_clear({ account_id }),
]

describe('a session from before its account had a second factor', () => {
  it('adds no TOTP that it began then', async () => {
    const ada = await test.account()
    const { secret } = await ada.client.account_totp_enrol()
    await addPasskey(await test.signIn(ada.id), device(), { second_factor: true })
    expect(await reasonOf(ada.client.account_totp_confirm({ code: codeOf(secret) }))).toBe('flow_expired')
    expect((await ada.client.account_sign_in_get()).totp).toBeNull()
  })

  it('changes no way in, even while the second factor is being added', async () => {
    const changes: ((client: TestAccount['client']) => Promise<unknown>)[] = [
      (client) => client.account_totp_enrol(),
      (client) => client.account_totp_remove(),
      (client) => client.account_recovery_codes_create(),
      (client) => client.account_passkey_register_begin(),
      (client) => client.account_passkey_remove({ passkey_id: 'AAAA' }),
      (client) => client.account_link_remove({ link_id: crypto.randomUUID() }),
      (client) => client.account_email_change({ email: 'mallory@x.io' }),
      (client) => client.account_username_change({ username: 'mallory' }),
    ]
    const reasons: string[] = []
    for (const change of changes) {
      const { id, client } = await test.account()
      await adding(id)
      reasons.push(await other.release(reasonOf(change(client))))
    }
    expect(reasons).toEqual(changes.map(() => 'fresh_authentication_required'))
  })

  it('changes no other account’s way in as admin, even while the second factor is being added', async () => {
    const changes = changesOf(await test.account())
    const reasons: string[] = []
    for (const change of changes) {
      const { id, client } = await test.account({ roles: ['admin'] })
      await adding(id)
      reasons.push(await other.release(reasonOf(change(client))))
    }
    expect(reasons).toEqual(changes.map(() => 'fresh_authentication_required'))
  })

  it('deletes its own account no more where that needs a fresh session', async () => {
    await using strict = await testService({ database_url: test.databaseUrl, step_up: 'all' })
    const { id, cookie } = await test.account()
    await adding(id)
    const deleted = reasonOf(strict.client(cookie).account_delete())
    expect(await other.release(deleted)).toBe('fresh_authentication_required')
  })

  it('sets no first password, and links nobody', async () => {
    const [ada, ben] = [await test.account(), await test.account()]
    await db.run(sql`update account set password_hash = '*' where id = ${ada.id}::uuid`)
    await adding(ada.id)
    const body = { new_password: 'another long password' }
    const set = await other.release(send(test, 'POST /password', { cookie: ada.cookie, body }))
    expect(set.json).toMatchObject({ error: 'fresh_authentication_required' })

    const { url, flow } = await start(test, { intent: 'link' }, { cookie: ben.cookie })
    const query = corp.authorize(url, { sub: 'mallory' })
    await adding(ben.id)
    const linked = await other.release(finish(test, { flow, query, cookie: ben.cookie }))
    expect(linked.json).toMatchObject({ error: 'flow_expired' })
  })
})

it('an admin whose role is being revoked changes nobody’s way in any more', async () => {
  const changes = changesOf(await test.account())
  const reasons: string[] = []
  for (const change of changes) {
    const { id, actor_id, client } = await test.account({ roles: ['admin'] })
    await other.begin('select from account where id = $1 for no key update', [id])
    await other.query('update role_grant set revoked_at = now() where actor_id = $1', [actor_id])
    reasons.push(await other.release(reasonOf(change(client))))
  }
  expect(reasons).toEqual(changes.map(() => 'insufficient_permissions'))
})
