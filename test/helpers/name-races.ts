import assert from 'node:assert/strict'
import { sql } from '../../src/db/db.ts'
import type { TestAccount, TestService } from '../../src/testing/index.ts'
import { type Contender, only, operator, type Race, race, rows } from './race-tools.ts'

const password = 'a long password'
const to =
  ({ service }: TestService, { id }: { id: string }, username: string): Contender =>
  () =>
    service.operations.setUsername({ account_id: id, username }, operator)
const own =
  ({ client }: TestAccount, username: string): Contender =>
  () =>
    client.account_username_change({ username })
const signup =
  (world: TestService, username: string): Contender =>
  () =>
    world.client().account.signup({ username, password })
const create =
  ({ service }: TestService, username: string): Contender =>
  () =>
    service.operations.createAccount({ username, password }, operator)
const holderOf = async (world: TestService, username: string): Promise<string | undefined> =>
  (await rows<{ id: string }>(world, sql`select id from account where username = ${username}`))[0]?.id

/** Races for usernames. */
export const nameRaces: Record<string, Race> = {
  'a username is left while others want it': async (world) => {
    const { operations } = world.service
    await operations.setSettings({ open_signup: true }, operator)
    const [ada, bob] = [await world.account({ username: 'wanted' }), await world.account()]
    const [left, invited, ...others] = await race([
      own(ada, 'other'),
      () => operations.createInvite({ username: 'wanted' }, operator),
      own(bob, 'wanted'),
      signup(world, 'wanted'),
      create(world, 'wanted'),
    ])
    assert.deepEqual([left, invited], ['ok', 'invite_account_exists_username'])
    assert.deepEqual(others, ['username_taken', 'signup_conflict', 'username_taken'])
    assert.equal(await holderOf(world, 'wanted'), undefined)
    await own(ada, 'wanted')()
    return 'nobody else has it'
  },

  'two accounts want each other’s username': async (world) => {
    const [ada, bob] = [await world.account({ username: 'one' }), await world.account({ username: 'two' })]
    const outcomes = await race([own(ada, 'two'), to(world, bob, 'one')])
    assert.deepEqual(outcomes, ['username_taken', 'username_taken'])
    return outcomes.join(' / ')
  },

  'one free username is wanted by many': async (world) => {
    await world.service.operations.setSettings({ open_signup: true }, operator)
    const [ada, bob] = [await world.account(), await world.account()]
    const wanted = [own(ada, 'free'), to(world, bob, 'free'), signup(world, 'free'), create(world, 'free')]
    const outcomes = await race(wanted)
    only(outcomes, ['ok', 'username_taken', 'signup_conflict'])
    assert.equal(outcomes.filter((one) => one === 'ok').length, 1, outcomes.join())
    return outcomes.join(' / ')
  },

  'an account takes its former username back while another wants it': async (world) => {
    const [ada, bob] = [await world.account({ username: 'former' }), await world.account()]
    await own(ada, 'present')()
    const outcomes = await race([own(ada, 'former'), own(bob, 'former')])
    assert.deepEqual(outcomes, ['ok', 'username_taken'])
    assert.equal(await holderOf(world, 'former'), ada.id)
    return outcomes.join(' / ')
  },

  'an account is purged while another wants its former username': async (world) => {
    const [ada, bob] = [await world.account({ username: 'former' }), await world.account()]
    await own(ada, 'present')()
    const [purged, renamed] = await race([
      () => world.service.operations.purgeAccount({ account_id: ada.id, confirm: true }, operator),
      own(bob, 'former'),
    ])
    assert.equal(purged, 'ok')
    only([renamed as string], ['ok', 'username_taken'])
    await own(bob, 'former')()
    assert.equal(await holderOf(world, 'former'), bob.id)
    return renamed as string
  },
}
