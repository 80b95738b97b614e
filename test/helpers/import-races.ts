import assert from 'node:assert/strict'
import { sql } from '../../src/db/db.ts'
import type { Imported } from '../../src/import/import.ts'
import type { TestService } from '../../src/testing/index.ts'
import { operator, type Race, race, rows } from './race-tools.ts'

const password = 'a long password'
const importing = async (
  { service }: TestService,
  source: string,
  names: readonly string[],
): Promise<Imported> =>
  await service.operations.importAccounts(
    names.map((username) => ({ username, email: `${username}@example.org` })),
    { ...operator, source },
  )
const holders = (world: TestService) =>
  rows<{ username: string; actors: number }>(
    world,
    sql`select username, (select count(*) from actor where account_id = account.id) as actors
      from account order by username`,
  )

/** Races of imports. */
export const importRaces: Record<string, Race> = {
  'an import and signups want the same names and e-mails': async (world) => {
    await world.service.operations.setSettings({ open_signup: true }, operator)
    let done: Imported | undefined
    const outcomes = await race([
      async () => {
        done = await importing(world, 'old', ['ada', 'bob'])
      },
      () => world.client().account.signup({ username: 'ada', password }),
      () => world.client().account.signup({ username: 'carl', email: 'BOB@example.org', password }),
    ])
    const [imported, ada, carl] = outcomes
    assert.equal(imported, 'ok')
    for (const one of [ada, carl]) assert.ok(one === 'ok' || one === 'signup_conflict', String(one))
    const won = [ada, carl].filter((one) => one === 'ok').length
    assert.deepEqual([done?.imported, done?.refused], [2 - won, won])
    const names = ['ada', carl === 'ok' ? 'carl' : 'bob']
    assert.deepEqual(
      await holders(world),
      names.map((username) => ({ username, actors: 1 })),
    )
    return outcomes.join(' / ')
  },

  'two imports of one source and one of another meet': async (world) => {
    const names = ['ada', 'bob', 'carl']
    const all = await Promise.all([
      importing(world, 'old', names),
      importing(world, 'old', names),
      importing(world, 'other', names.toReversed()),
    ])
    const [one, two, other] = all.map(({ imported, skipped, refused }) => [imported, skipped, refused].join())
    assert.equal(
      all.reduce((sum, { imported }) => sum + imported, 0),
      names.length,
    )
    assert.deepEqual(
      await holders(world),
      names.map((username) => ({ username, actors: 1 })),
    )
    return [one, two, other].join(' / ')
  },

  'a name is left while an import wants it': async (world) => {
    const ada = await world.account({ username: 'ada' })
    let done: Imported | undefined
    const outcomes = await race([
      async () => {
        done = await importing(world, 'old', ['ada'])
      },
      () => world.service.operations.setUsername({ account_id: ada.id, username: 'lovelace' }, operator),
    ])
    assert.deepEqual([outcomes, done?.imported, done?.refused], [['ok', 'ok'], 0, 1])
    assert.deepEqual(await holders(world), [{ username: 'lovelace', actors: 1 }])
    return 'it stays reserved'
  },
}
