import { afterAll, beforeAll, expect, it } from 'vitest'
import { endingRaces, raceWorld, runRace } from '../../test/helpers/ending-races.ts'
import type { TestService } from '../testing/index.ts'

/** Enough to meet each order; `npm run bench:races` runs 200 of each. */
const rounds = 25
let world: TestService
beforeAll(async () => {
  world = await raceWorld()
})
afterAll(() => world.close())

it.each(Object.keys(endingRaces))('%s: the promises hold in every order', async (name) => {
  for (let round = 0; round < rounds; round++) expect(await runRace(world, name)).toBeTruthy()
})
