import { describe, expect, it } from 'vitest'
import { grantChangeRaces } from '../../test/helpers/grant-change-races.ts'
import { offerEndingRaces } from '../../test/helpers/grant-ending-races.ts'
import { type GrantRace, grantRaceWorld, runGrantRace } from '../../test/helpers/grant-race-tools.ts'
import { acceptRaces } from '../../test/helpers/grant-races.ts'

/** Enough to see each order; `npm run bench:races` runs many more of each. */
const rounds = (name: string): number => (/^R(1|3|10|20|24|30|32) /.test(name) ? 24 : 8)
const races = await grantRaceWorld()

describe.each<[string, Record<string, GrantRace>]>([
  ['offers that are accepted', acceptRaces],
  ['offers that end', offerEndingRaces],
  ['grants', grantChangeRaces],
])('races of %s', (_what, table) => {
  it.each(Object.entries(table))('%s: only what is allowed, each once on the books', async (name, race) => {
    for (let round = 0; round < rounds(name); round++)
      expect(await runGrantRace(races.world, race)).toBeTruthy()
  })
})

it('none of them met a deadlock: everybody takes the locks in one order', async () => {
  expect(await races.close()).toBe(0)
})
