import fc from 'fast-check'
import { afterAll, test as it } from 'vitest'
import { property } from '../../test/model/run.ts'
import { openStage } from '../../test/model/world.ts'

const stage = await openStage()
afterAll(() => stage.close())

/** `npm run bench:properties` runs two thousand of them. */
it('after every move, all methods agree with the access rule and with each other', async () => {
  await fc.assert(property(stage, 10), { numRuns: 20 })
})
