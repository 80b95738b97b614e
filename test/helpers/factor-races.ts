import assert from 'node:assert/strict'
import { sql } from '../../src/db/db.ts'
import { type TestAccount, type TestService, testService } from '../../src/testing/index.ts'
import { send } from './account-routes.ts'
import { type Contender, credentials, type Outcome, only, race, rows } from './race-tools.ts'
import { codeOf, firstStep, type Guarded, guarded, secondStep } from './totp.ts'

/** Two nodes on one database, without limits. */
type FactorWorld = { near: TestService; far: TestService; close(): Promise<void> }
type FactorRace = (world: FactorWorld) => Promise<Outcome>

const unlimited = Object.fromEntries(
  ['login_ip', 'login_account', 'second_factor', 'credential', 'admin_write', 'account'].map((name) => [
    `limit_${name}`,
    'off',
  ]),
)

export async function factorWorld(): Promise<FactorWorld> {
  const near = await testService(unlimited)
  const far = await testService({ ...unlimited, database_url: near.databaseUrl })
  const close = async (): Promise<void> => {
    await far.close()
    await near.close()
  }
  return { near, far, close }
}

const begin = async (test: TestService, ada: TestAccount) => (await firstStep(test, ada)).cookie as string

/** A refusal of a route as one of a method. */
const step =
  (node: TestService, cookie: string, body: Parameters<typeof secondStep>[2]): Contender =>
  async () => {
    const { status, json } = await secondStep(node, cookie, body)
    if (status !== 200) throw Object.assign(new Error(String(status)), { reason: json?.error })
  }
const post =
  (node: TestService, path: string, { cookie }: TestAccount, body: object): Contender =>
  async () => {
    const { status, json } = await send(node, `POST ${path}`, { cookie, body })
    if (status !== 200) throw Object.assign(new Error(String(status)), { reason: json?.error })
  }

const flowsOf = ({ near }: FactorWorld, { id }: TestAccount) =>
  rows(near, sql`select from sign_in_flow where account_id = ${id}::uuid`)

async function oneWins(contenders: Contender[], other: string): Promise<Outcome> {
  const outcomes = (await race(contenders)).sort()
  assert.deepEqual(outcomes, [other, 'ok'].sort())
  return outcomes.join(' / ')
}

const newPassword = 'another long password'
const changePassword = (node: TestService, ada: Guarded): Contender =>
  post(node, '/password', ada, { current_password: ada.password, new_password: newPassword })

/** A sign-in against a change that ends it: whichever is first, the account has only the sessions it should. */
async function againstEnding(
  world: FactorWorld,
  ending: (ada: Guarded, root: TestAccount) => Contender,
  left: (outcome: string) => number,
): Promise<Outcome> {
  const { near, far } = world
  const [ada, root] = [await guarded(near), await near.account({ roles: ['admin'] })]
  const flow = await begin(near, ada)
  const [signedIn = '', ended] = await race([
    step(far, flow, { totp: codeOf(ada.secret) }),
    ending(ada, root),
  ])
  only([signedIn], ['ok', 'flow_expired'])
  assert.equal(ended, 'ok')
  assert.equal((await credentials(near, ada)).sessions, left(signedIn))
  assert.deepEqual(await flowsOf(world, ada), [])
  return signedIn
}

export const factorRaces: Record<string, FactorRace> = {
  'one TOTP code in two flows': async ({ near, far }) => {
    const ada = await guarded(near)
    const [first, second] = [await begin(near, ada), await begin(far, ada)]
    const totp = codeOf(ada.secret)
    return await oneWins([step(near, first, { totp }), step(far, second, { totp })], 'invalid_second_factor')
  },
  'one recovery code in two flows': async ({ near, far }) => {
    const ada = await guarded(near)
    const [first, second] = [await begin(near, ada), await begin(far, ada)]
    const recovery_code = ada.recovery_codes[0] as string
    const contenders = [step(near, first, { recovery_code }), step(far, second, { recovery_code })]
    return await oneWins(contenders, 'invalid_second_factor')
  },
  'two recovery codes in one flow': async ({ near, far }) => {
    const ada = await guarded(near)
    const flow = await begin(near, ada)
    const [one, other] = ada.recovery_codes as [string, string]
    const contenders = [step(near, flow, { recovery_code: one }), step(far, flow, { recovery_code: other })]
    const outcome = await oneWins(contenders, 'flow_expired')
    const left = await rows(near, sql`select from account_recovery_code where account_id = ${ada.id}::uuid`)
    assert.equal(left.length, 9)
    return outcome
  },
  'one TOTP confirmed twice': async ({ near, far }) => {
    const ada = await near.account()
    const { secret } = await ada.client.account_totp_enrol()
    const code = codeOf(secret)
    const confirm =
      (node: TestService): Contender =>
      () =>
        node.client(ada.cookie).account_totp_confirm({ code })
    return await oneWins([confirm(near), confirm(far)], 'flow_expired')
  },
  'second step, removal of the factor': (world) =>
    againstEnding(
      world,
      ({ client }) =>
        () =>
          client.account_totp_remove(),
      (signedIn) => (signedIn === 'ok' ? 2 : 1),
    ),
  'second step, factors cleared by an admin': (world) =>
    againstEnding(
      world,
      ({ id: account_id }, root) =>
        () =>
          root.client.admin_account_factors_clear({ account_id }),
      (signedIn) => (signedIn === 'ok' ? 2 : 1),
    ),
  'second step, change of the password': (world) =>
    againstEnding(
      world,
      (ada) => changePassword(world.near, ada),
      () => 0,
    ),
  'second step, deletion of the account': (world) =>
    againstEnding(
      world,
      ({ id: account_id }, root) =>
        () =>
          root.client.account_delete({ account_id }),
      () => 0,
    ),
  'proving again, change of the password': async (world) => {
    const { near, far } = world
    const ada = { ...(await near.account()), secret: '', recovery_codes: [] }
    const outcomes = await race([
      post(near, '/reauthenticate', ada, { password: ada.password }),
      changePassword(far, ada),
    ])
    const [proven = '', changed = ''] = outcomes
    only([proven, changed], ['ok', 'invalid_credentials', 'authentication_required'])
    const { sessions } = await credentials(near, ada)
    // The change was made with the session that the other call replaces, so at least one of them succeeds.
    assert.ok(outcomes.includes('ok'))
    assert.equal(sessions, changed === 'ok' ? 0 : 1)
    return outcomes.join(' / ')
  },
  'adding TOTP, change of the password': async ({ near, far }) => {
    const ada = { ...(await near.account()), secret: '', recovery_codes: [] }
    const { secret } = await ada.client.account_totp_enrol()
    const [added = '', changed] = await race([
      () => near.client(ada.cookie).account_totp_confirm({ code: codeOf(secret) }),
      changePassword(far, ada),
    ])
    only([added], ['ok', 'authentication_required'])
    assert.equal(changed, 'ok')
    const factors = await rows(
      near,
      sql`select from account_totp where account_id = ${ada.id}::uuid and confirmed_at is not null`,
    )
    assert.equal(factors.length, added === 'ok' ? 1 : 0)
    return added
  },
}
