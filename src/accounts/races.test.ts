import { afterAll, expect, it } from 'vitest'
import { races, raceWorld, runRace } from '../../test/helpers/races.ts'

/** Enough to see each order; `npm run bench:races` runs 500 of each. */
const rounds = 8
/** The bootstrap happens once, so each of its races starts a new service. */
const bootstrapRounds = 2
const world = await raceWorld()
afterAll(() => world.close())

it.each(Object.entries(races))('%s: the promises hold in every order', async (name, race) => {
  const times = name.includes('bootstrap') ? bootstrapRounds : rounds
  for (let round = 0; round < times; round++) expect(await runRace(world, race)).toBeTruthy()
})
