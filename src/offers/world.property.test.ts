import fc from 'fast-check'
import { afterAll, test as it } from 'vitest'
import { property } from '../../test/model/grants/run.ts'
import { openStage } from '../../test/model/grants/world.ts'

const stage = await openStage()
afterAll(() => stage.close())

/** `npm run bench:properties` runs two thousand of them. */
it('after every move, answers, audit rows, notifications and lists are those of the rules of role grants', async () => {
  await fc.assert(property(stage, 40), { numRuns: 6 })
})
