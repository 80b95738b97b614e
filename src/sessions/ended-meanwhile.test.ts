import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { send, sessionIn } from '../../test/helpers/account-routes.ts'
import { eternal } from '../../test/helpers/callers.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'

/** What a session has asked for happens before the session is ended, or not at all. */

const test = await serviceForFile({ max_tokens: 1 })
const { db } = test.service.app
const other = await rival(test.databaseUrl)
afterAll(() => other.close())

let ada: TestAccount
let session_id: string
beforeEach(async () => {
  ada = await test.account()
  session_id = sessionIn(ada.cookie)
})
const mint = () => ada.client.account_token_create({ scope: { kind: 'full' }, lifetime: eternal })
const post = async (route: string, body: object) => {
  const { json } = await send(test, route, { cookie: ada.cookie, body })
  return json?.error ?? 'done'
}

describe('a call whose session is being ended is refused', () => {
  const calls: [string, () => Promise<unknown>][] = [
    ['POST /reauthenticate', () => post('POST /reauthenticate', { password: ada.password })],
    [
      'POST /password',
      () => post('POST /password', { current_password: ada.password, new_password: 'another long password' }),
    ],
    ['account_token_create', () => reasonOf(mint())],
    ['account_totp_enrol', () => reasonOf(ada.client.account_totp_enrol())],
  ]
  it.each(calls)('%s', async (_name, ask) => {
    await other.begin('delete from auth_session where id = $1', [session_id])
    const asked = ask()
    await Promise.race([asked, other.blocks(1)])
    await other.commit()
    expect(await asked).toBe('authentication_required')
    const left = sql`select count(*) as left from`
    expect(await db.one(sql`${left} auth_session where account_id = ${ada.id}::uuid`)).toEqual({ left: 0 })
    expect(await db.one(sql`${left} api_token where account_id = ${ada.id}::uuid`)).toEqual({ left: 0 })
  })
})

it('the end of a session waits for what the session has begun', async () => {
  const { id } = await mint()
  // The next token replaces this one, so it waits for this row.
  await other.begin('select from api_token where id = $1 for update', [id])
  const answered: string[] = []
  const minted = mint().finally(() => answered.push('minted'))
  await other.blocks(1)
  const revoked = ada.client.account_session_revoke({ session_id }).finally(() => answered.push('revoked'))
  await Promise.race([revoked, other.blocks(2)])
  await other.commit()
  await Promise.all([minted, revoked])
  expect(answered).toEqual(['minted', 'revoked'])
})
