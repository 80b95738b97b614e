import assert from 'node:assert/strict'
import { sql } from '../../src/db/db.ts'
import type { TestService } from '../../src/testing/index.ts'
import { send } from './account-routes.ts'
import type { AuthenticationResponse } from './authenticator.ts'
import { addPasskey, beginPasskey, device } from './passkeys.ts'
import { type Contender, only, type Race, race, rows } from './race-tools.ts'

const finish =
  (world: TestService, response: AuthenticationResponse, cookie: string): Contender =>
  async () => {
    const { status, json } = await send(world, 'POST /passkey_finish', { body: { response }, cookie })
    if (status !== 200) throw { reason: json?.error }
  }
const remove =
  ({ client }: Pick<Awaited<ReturnType<TestService['account']>>, 'client'>, passkey_id: string): Contender =>
  () =>
    client.account_passkey_remove({ passkey_id })
const winners = (outcomes: readonly string[]): number => outcomes.filter((one) => one === 'ok').length

/** Races of passkeys. */
export const passkeyRaces: Record<string, Race> = {
  'the last two ways in are removed': async (world) => {
    const ada = await world.account()
    const keys = [await addPasskey(ada, device()), await addPasskey(ada, device())]
    await world.service.app.db.run(sql`update account set password_hash = '*' where id = ${ada.id}::uuid`)
    const outcomes = await race(keys.map(({ passkey }) => remove(ada, passkey.id)))
    assert.deepEqual(outcomes.toSorted(), ['last_sign_in_method', 'ok'])
    return outcomes.join(' / ')
  },

  'a passkey is removed while it signs in': async (world) => {
    const [ada, phone] = [await world.account(), device()]
    const { passkey } = await addPasskey(ada, phone)
    const { options, cookie } = await beginPasskey(world)
    const [removed, entered] = await race([
      remove(ada, passkey.id),
      finish(world, phone.get(options), cookie),
    ])
    assert.equal(removed, 'ok')
    only([entered as string], ['ok', 'invalid_credentials'])
    assert.equal((await rows(world, sql`select from account_passkey`)).length, 0)
    return entered as string
  },

  'one response of a passkey is used by four': async (world) => {
    const [ada, phone] = [await world.account(), device()]
    await addPasskey(ada, phone)
    const { options, cookie } = await beginPasskey(world)
    const response = phone.get(options)
    const outcomes = await race(Array.from({ length: 4 }, () => finish(world, response, cookie)))
    only(outcomes, ['ok', 'flow_expired'])
    assert.equal(winners(outcomes), 1)
    return 'one session'
  },

  'one key is registered by two accounts': async (world) => {
    const both = [await world.account(), await world.account()]
    const id = Buffer.from(`key of ${both[0]?.id}`).toString('base64url')
    const outcomes = await race(both.map((account) => () => addPasskey(account, device(), { id })))
    assert.deepEqual(outcomes.toSorted(), ['ok', 'passkey_known'])
    return outcomes.join(' / ')
  },
}
