import { afterAll, expect, it } from 'vitest'
import { factorRaces, factorWorld } from '../../test/helpers/factor-races.ts'

/** Enough to see each order; `npm run bench:races` runs 500 of each. */
const rounds = 8
const world = await factorWorld()
afterAll(() => world.close())

it.each(Object.entries(factorRaces))('%s: the promises hold in every order, on two nodes', async (_, run) => {
  for (let round = 0; round < rounds; round++) expect(await run(world)).toBeTruthy()
})
