import { afterAll } from 'vitest'
import { sql } from '../../src/db/db.ts'
import type { TestAccount } from '../../src/testing/index.ts'
import { signIn, testProvider } from './oidc.ts'
import { onLocalhost } from './passkeys.ts'
import { serviceForFile } from './service.ts'

/** A service with two providers while signup is open, and people who link accounts to them. */
export async function linkedAccounts() {
  const [corp, other] = await Promise.all([testProvider(), testProvider('other')])
  afterAll(() => Promise.all([corp.close(), other.close()]))
  const options = {
    ...onLocalhost,
    limit_login_ip: null,
    limit_signup_open_ip: null,
    limit_credential: null,
    limit_flow_ip: null,
    oidc: [corp.entry({ on_unknown: 'signup' }), other.entry()],
  } as const
  const test = await serviceForFile(options)
  const { app, operations } = test.service
  await operations.setSettings({ open_signup: true }, { via: 'test' })

  let count = 0
  const person = () => ({ sub: `subject ${++count}`, preferred_username: `person-${count}` })
  const link = (account: Pick<TestAccount, 'cookie'>, who = person(), provider = 'corp') =>
    signIn(test, provider === 'corp' ? corp : other, who, {
      intent: 'link',
      provider,
      cookie: account.cookie,
    })
  const linkId = async ({ id }: Pick<TestAccount, 'id'>, provider = 'corp') =>
    (
      await app.db.rows<{ id: string }>(sql`
        select id from account_link where account_id = ${id}::uuid and provider = ${provider}`)
    )[0]?.id as string
  /** An account whose only way to sign in is its link. */
  async function passwordless() {
    const who = person()
    const { cookie = '' } = await signIn(test, corp, who)
    const client = test.client(cookie)
    const { id } = await client.account_verify()
    return { who, cookie, client, id, link_id: await linkId({ id }) }
  }

  return { ...{ corp, other, options, test, app }, ...{ person, link, linkId, passwordless } }
}
