import assert from 'node:assert/strict'
import { sql } from '../../src/db/db.ts'
import type { TestAccount, TestService } from '../../src/testing/index.ts'
import { send } from './account-routes.ts'
import { tokenMailedTo } from './mailed.ts'
import { type Contender, only, operator, type Race, race, rows } from './race-tools.ts'

const confirm =
  (world: TestService, token: string): Contender =>
  async () => {
    const { status, json } = await send(world, 'POST /email_confirm', { body: { token } })
    if (status !== 200) throw { reason: json?.error }
  }
const change =
  ({ client }: TestAccount, email: string): Contender =>
  () =>
    client.account_email_change({ email })
async function changeToken(world: TestService, account: TestAccount, email: string): Promise<string> {
  await change(account, email)()
  return await tokenMailedTo(world, account)
}
const emailOf = async (world: TestService, { id }: TestAccount) =>
  (
    await rows<{ email: string; email_verified: boolean }>(
      world,
      sql`select email, email_verified from account where id = ${id}::uuid`,
    )
  )[0]

/** Races for e-mail addresses, and of the links that prove them. */
export const emailRaces: Record<string, Race> = {
  'two accounts confirm one address': async (world) => {
    const both = [await world.account(), await world.account()] as const
    const tokens = [
      await changeToken(world, both[0], 'one@x.io'),
      await changeToken(world, both[1], 'ONE@x.io'),
    ]
    const outcomes = await race(tokens.map((token) => confirm(world, token)))
    assert.deepEqual(outcomes.toSorted(), ['email_taken', 'ok'])
    return outcomes.join(' / ')
  },

  'two accounts want each other’s e-mail': async (world) => {
    const one = await world.account({ email: 'one@x.io' })
    const two = await world.account({ email: 'two@x.io' })
    const token = await changeToken(world, two, 'one@x.io')
    const outcomes = await race([
      () => world.service.operations.setEmail({ account_id: one.id, email: 'two@x.io' }, operator),
      confirm(world, token),
    ])
    assert.deepEqual(outcomes, ['email_taken', 'email_taken'])
    return outcomes.join(' / ')
  },

  'one link to confirm an address is used four times': async (world) => {
    const ada = await world.account()
    const token = await changeToken(world, ada, 'ada@x.io')
    const outcomes = await race(Array.from({ length: 4 }, () => confirm(world, token)))
    only(outcomes, ['ok', 'ticket_not_found'])
    assert.equal(outcomes.filter((one) => one === 'ok').length, 1)
    const written = await rows(
      world,
      sql`
      select from audit_entries() where event_type = 'account_update' and target_account_id = ${ada.id}::uuid`,
    )
    assert.equal(written.length, 1)
    return 'once'
  },

  'an e-mail is changed and confirmed while the password is set': async (world) => {
    const ada = await world.account()
    const token = await changeToken(world, ada, 'ada@x.io')
    const password = 'another long password'
    const [set, ...others] = await race([
      () => world.service.operations.setPassword({ account_id: ada.id, password }, operator),
      change(ada, 'evil@x.io'),
      confirm(world, token),
    ])
    assert.equal(set, 'ok')
    only(others, ['ok', 'authentication_required', 'ticket_not_found'])
    const open = await rows(
      world,
      sql`
      select from account_ticket where account_id = ${ada.id}::uuid and used_at is null and voided_at is null`,
    )
    assert.equal(open.length, 0, 'no link of before the new password is left')
    return others.join(' / ')
  },

  'an address is verified while another is set': async (world) => {
    const ada = await world.account({ email: 'ada@x.io' })
    await ada.client.account_email_verify_send()
    const [verified, set] = await race([
      confirm(world, await tokenMailedTo(world, ada)),
      () => world.service.operations.setEmail({ account_id: ada.id, email: 'other@x.io' }, operator),
    ])
    assert.equal(set, 'ok')
    only([verified as string], ['ok', 'ticket_not_found'])
    assert.deepEqual(await emailOf(world, ada), { email: 'other@x.io', email_verified: false })
    return verified as string
  },
}
