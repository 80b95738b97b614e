import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { mailIsDown } from '../../test/helpers/mailed.ts'
import { finish, signIn, start, testProvider } from '../../test/helpers/oidc.ts'
import { guarded } from '../../test/helpers/totp.ts'
import { sha256Hex } from '../auth/secrets.ts'
import type { OidcProviderOptions } from '../config/oidc.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestOptions, type TestService, testService } from '../testing/index.ts'

/** What happens to identities that no account is linked to. */

const corp = await testProvider()
afterAll(() => corp.close())
const opened: TestService[] = []
afterEach(() => Promise.all(opened.splice(0).map((test) => test.close())))

async function serviceWith(
  entry: Partial<OidcProviderOptions>,
  options: TestOptions = {},
): Promise<TestService> {
  const test = await testService({ limit_login_ip: null, oidc: [corp.entry(entry)], ...options })
  opened.push(test)
  return test
}

const operator = { via: 'test' }
const ada = { sub: 'ada', email: 'Ada@Corp.example', email_verified: true, preferred_username: 'ada' }
const unknown = [403, { error: 'oidc_unknown_account' }]
const exists = [409, { error: 'oidc_account_exists' }]
const notAllowed = [403, { error: 'oidc_not_allowed' }]
const made = [200, { ok: true, created: true, linked: false }]
const linked = [200, { ok: true, created: false, linked: true }]
type More = { invite_token?: string }
const outcome = async (test: TestService, who: object = ada, more: More = {}) => {
  const { status, json } = await signIn(test, corp, who as typeof ada, more)
  return [status, json]
}
const me = async (test: TestService, who: object = ada, more: More = {}) => {
  const { cookie } = await signIn(test, corp, who as typeof ada, more)
  return (await send(test, 'GET /status', { cookie })).json?.account
}
const open = (test: TestService) => test.service.operations.setSettings({ open_signup: true }, operator)
const invite = async (test: TestService, wanted: { email?: string; username?: string }) =>
  (await test.service.operations.createInvite(wanted, operator)).id

/** An invite ticket as the link in a message carries it. */
async function ticket(
  test: TestService,
  invite_id: string,
  { delivery = 'mailed', more = '' } = {},
): Promise<string> {
  const token = `secret_svc_ticket_${sha256Hex(`${invite_id} ${delivery}`).slice(0, 43)}`
  await test.service.app.db.run(sql`
    insert into account_ticket (purpose, token_hash, invite_id, delivery, expires_at ${sql.raw(more && ', voided_at')})
    values ('invite', ${sha256Hex(token)}, ${invite_id}::uuid, ${delivery}, now() + interval '1 day'
      ${sql.raw(more && ', now()')})`)
  return token
}

describe('with on_unknown refuse', () => {
  it('nobody gets an account, invited or while signup is open', async () => {
    const test = await serviceWith({}, { invite_claim: 'match' })
    await open(test)
    const invite_token = await ticket(test, await invite(test, { email: ada.email }))
    await scenario(test, () => outcome(test), {
      audit: [
        {
          event_type: 'login',
          outcome: 'failure',
          metadata: { reason: 'oidc_unknown_account', provider: 'corp' },
        },
      ],
    })
    expect(await outcome(test)).toEqual(unknown)
    expect(await outcome(test, ada, { invite_token })).toEqual(unknown)
  })
})

describe('with on_unknown invite_only', () => {
  it('an open invite of the verified e-mail admits once, as it is not for others', async () => {
    const test = await serviceWith({ on_unknown: 'invite_only' }, { invite_claim: 'match' })
    await open(test)
    expect(await outcome(test)).toEqual(unknown)
    const invite_id = await invite(test, { email: 'ada@corp.example' })
    for (const change of [{ email_verified: false }, { email: 'eve@corp.example' }, { email: undefined }])
      expect(await outcome(test, { ...ada, ...change })).toEqual(unknown)
    expect(await me(test)).toMatchObject({ username: 'ada', email: ada.email, email_verified: true })
    const [row] = await test.service.app.db.rows<{ claimed: boolean }>(sql`
      select claimed_by is not null as claimed from invite where id = ${invite_id}::uuid`)
    expect(row).toEqual({ claimed: true })
    expect(await outcome(test, { ...ada, sub: 'other', email: 'ada@corp.example' })).toEqual(exists)
  })

  it('an expired invite admits nobody', async () => {
    const test = await serviceWith({ on_unknown: 'invite_only' }, { invite_claim: 'match' })
    const id = await invite(test, { email: ada.email })
    await test.service.app.db.run(sql`
      update invite set expires_at = date_trunc('milliseconds', now()) where id = ${id}::uuid`)
    expect(await outcome(test)).toEqual(unknown)
  })

  it('in mode code a token is needed, that of the invite for this e-mail', async () => {
    const test = await serviceWith({ on_unknown: 'invite_only' }, { invite_claim: 'code' })
    const [mine, theirs] = [
      await invite(test, { email: ada.email }),
      await invite(test, { email: 'eve@corp.example' }),
    ]
    const [own, foreign] = [await ticket(test, mine), await ticket(test, theirs)]
    expect(await outcome(test)).toEqual(unknown)
    for (const invite_token of [foreign, 'secret_svc_ticket_none', ''])
      expect(await outcome(test, ada, { invite_token })).toEqual(unknown)
    expect(await outcome(test, { ...ada, email_verified: false }, { invite_token: own })).toEqual(unknown)
    expect(await outcome(test, ada, { invite_token: own })).toEqual(made)
    expect(await outcome(test, { ...ada, sub: 'x', email: 'x@corp.example' }, { invite_token: own })).toEqual(
      unknown,
    )
  })

  it('a token of an invite without an e-mail admits whoever has it, by the name in the invite', async () => {
    const test = await serviceWith({ on_unknown: 'invite_only' }, { invite_claim: 'code' })
    const invite_token = await ticket(test, await invite(test, { username: 'lovelace' }), {
      delivery: 'revealed',
    })
    expect(await me(test, ada, { invite_token })).toMatchObject({ username: 'lovelace', email: ada.email })
    const { tickets } = await test.service.operations.listTickets()
    const ends = tickets.map(({ used_at, voided_at }) => [used_at !== null, voided_at !== null])
    expect(ends).toEqual([
      [true, false],
      [false, true],
    ])
  })

  it('a link that an admin ends meanwhile admits nobody, even if another was made in its place', async () => {
    const test = await serviceWith({ on_unknown: 'invite_only' }, { invite_claim: 'code', ...mailIsDown })
    const { operations } = test.service
    const invite_id = await invite(test, { username: 'lovelace' })
    const sent = await operations.sendInvite({ invite_id, reveal: true }, operator)
    const invite_token = String(sent.link).split('#ticket=')[1] as string
    const { url, flow } = await start(test, { invite_token })
    const [{ id: ticket_id } = expect.unreachable()] = (await operations.listTickets()).tickets
    await operations.revokeTicket({ ticket_id }, operator)
    await operations.sendInvite({ invite_id, reveal: true }, operator)
    const { status, json } = await finish(test, { flow, query: corp.authorize(url, ada) })
    expect([status, json]).toEqual(unknown)
  })

  it('a ticket that was voided admits nobody; a revealed one not where mailed ones count', async () => {
    const test = await serviceWith({ on_unknown: 'invite_only' }, { invite_claim: 'code' })
    const id = await invite(test, { username: 'lovelace' })
    expect(await outcome(test, ada, { invite_token: await ticket(test, id, { more: 'voided' }) })).toEqual(
      unknown,
    )
    const strict = await serviceWith(
      { on_unknown: 'invite_only' },
      {
        invite_claim: 'verified_email',
        deliver: () => {},
        secret_keys: ['k'.repeat(43)],
        link_url: 'https://a.example/x',
      },
    )
    const invited = await invite(strict, { email: 'grace@corp.example' })
    const grace = { ...ada, sub: 'grace', email: 'grace@corp.example' }
    const revealed = await ticket(strict, invited, { delivery: 'revealed' })
    expect(await outcome(strict, grace, { invite_token: revealed })).toEqual(unknown)
    expect(await outcome(strict, grace, { invite_token: await ticket(strict, invited) })).toEqual(made)
  })
})

describe('with on_unknown signup', () => {
  it('closed signup admits the invited only, open signup anybody', async () => {
    const test = await serviceWith({ on_unknown: 'signup' }, { invite_claim: 'match' })
    expect(await outcome(test)).toEqual(unknown)
    await invite(test, { email: 'grace@corp.example' })
    expect(await outcome(test, { ...ada, sub: 'grace', email: 'grace@corp.example' })).toEqual(made)
    await open(test)
    expect(await outcome(test)).toEqual(made)
  })

  it('a token that does not fit is refused while signup is open too', async () => {
    const test = await serviceWith({ on_unknown: 'signup' }, { invite_claim: 'match' })
    await open(test)
    expect(await outcome(test, ada, { invite_token: 'secret_svc_ticket_none' })).toEqual(unknown)
  })
})

describe('an identity with the e-mail of an account', () => {
  const both = { auto_link: 'both_verified', allowed_domains: ['CORP.example'] } as const
  const owner = async (test: TestService, { verified = true, roles = [] as string[] } = {}) => {
    const account = await test.account({ email: 'ada@corp.example', roles })
    if (verified) await test.service.operations.verifyEmail({ account_id: account.id }, operator)
    return account
  }

  it('is refused, so that its owner signs in and links', async () => {
    const test = await serviceWith({ on_unknown: 'signup' })
    await open(test)
    await owner(test)
    await scenario(test, () => outcome(test), {
      audit: [
        {
          event_type: 'login',
          outcome: 'failure',
          metadata: { reason: 'oidc_account_exists', provider: 'corp' },
        },
      ],
    })
    expect(await outcome(test)).toEqual(exists)
  })

  it('that the provider has not verified is one like any other, and never gets the e-mail', async () => {
    const test = await serviceWith({ on_unknown: 'signup', ...both, allowed_domains: ['corp.example'] })
    await owner(test)
    // The domain of an unverified address is not accepted either.
    expect(await outcome(test, { ...ada, email_verified: false })).toEqual(notAllowed)
    const open_ = await serviceWith({ on_unknown: 'signup' })
    await open(open_)
    await owner(open_)
    expect(await me(open_, { ...ada, email_verified: 'no' })).toMatchObject({ email: null })
  })

  it('is linked if it is verified here and there and the domain is trusted', async () => {
    const test = await serviceWith(both)
    const { id } = await owner(test)
    await scenario(test, () => outcome(test), {
      audit: [
        { event_type: 'factor_add', account_id: id, target_account_id: id },
        { event_type: 'login', account_id: id },
      ],
    })
    expect(await me(test)).toMatchObject({ id })
  })

  it.each([
    ['not verified here', { verified: false }],
    ['of an admin', { roles: ['admin'] }],
    ['of the keeper', { roles: ['keeper'] }],
  ])('is not linked if it is %s', async (_what, state) => {
    const test = await serviceWith(both)
    await owner(test, state)
    expect(await outcome(test)).toEqual(exists)
  })

  it('is not linked past the second factor of the account, unless the provider proves one', async () => {
    const test = await serviceWith({ ...both, second_factor: { amr: ['mfa'] } })
    const { id, client } = await guarded(test, { email: 'ada@corp.example' })
    await test.service.operations.verifyEmail({ account_id: id }, operator)
    expect(await outcome(test)).toEqual(exists)
    expect((await client.account_sign_in_get()).links).toEqual([])
    expect(await outcome(test, { ...ada, amr: ['mfa'] })).toEqual(linked)
  })

  it('is not linked if the account has an identity of the provider already', async () => {
    const test = await serviceWith(both)
    await owner(test)
    expect(await outcome(test)).toEqual(linked)
    expect(await outcome(test, { ...ada, sub: 'another' })).toEqual(exists)
  })
})

describe('at every sign-in', () => {
  it('claims must have the values that are required', async () => {
    const test = await serviceWith({ on_unknown: 'signup', required_claims: { tid: 'corp', staff: true } })
    await open(test)
    const staff = { ...ada, tid: 'corp', staff: true }
    for (const who of [
      ada,
      { ...staff, tid: 'other' },
      { ...staff, tid: ['corp'] },
      { ...staff, staff: 'true' },
    ])
      expect(await outcome(test, who)).toEqual(notAllowed)
    expect(await outcome(test, staff)).toEqual(made)
    await scenario(test, () => outcome(test, ada), {
      audit: [
        {
          event_type: 'login',
          outcome: 'failure',
          metadata: { reason: 'oidc_not_allowed', provider: 'corp' },
        },
      ],
    })
    expect((await outcome(test, staff))[0]).toBe(200)
  })

  it('the verified e-mail must be in an allowed domain', async () => {
    const test = await serviceWith({ on_unknown: 'signup', allowed_domains: ['corp.example'] })
    await open(test)
    for (const email of ['ada@evil.example', 'ada@sub.corp.example', 'ada@notcorp.example', undefined])
      expect(await outcome(test, { ...ada, email })).toEqual(notAllowed)
    expect(await outcome(test)).toEqual(made)
    expect(await outcome(test, { ...ada, email: 'ada@evil.example' })).toEqual(notAllowed)
  })

  it('claims come by the names of the setting, from the userinfo endpoint too, trusted as it says', async () => {
    const test = await serviceWith({
      on_unknown: 'signup',
      trust_email: true,
      claims: { username: 'upn', email: 'mail', name: 'displayName' },
    })
    await open(test)
    const who = { sub: 'x', upn: 'ada@corp.example', mail: 'mail@corp.example', displayName: 'Ada L.' }
    expect(await me(test, who)).toMatchObject({
      username: 'ada',
      email: 'mail@corp.example',
      email_verified: true,
    })
    expect(await me(test, { ...who, sub: 'y', mail: 'y@corp.example', email_verified: false })).toMatchObject(
      {
        email: null,
      },
    )
  })
})
