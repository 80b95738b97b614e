import { afterAll, expect, it } from 'vitest'
import { cellRaces } from '../../test/helpers/cell-races.ts'
import { raceWorld, runRace } from '../../test/helpers/races.ts'

/** Enough to hit each order; `npm run bench:races` runs each 500 times. */
const rounds = 8
const world = await raceWorld()
afterAll(() => world.close())

it.each(Object.entries(cellRaces))('%s: the guarantees hold in every order', async (_name, race) => {
  for (let round = 0; round < rounds; round++) expect(await runRace(world, race)).toBeTruthy()
})
