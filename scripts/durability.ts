/**
 * `npm run durability [rounds]`: kills the server, its database, or both in the middle of writes, ten times
 * each. After each kill a plain start must suffice, and no acknowledged write may be lost.
 */
import { tmpdir } from 'node:os'
import { crashTest, victims } from '../test/helpers/crash.ts'
import { workspace } from '../test/helpers/server-process.ts'

const rounds = Number(process.argv[2] ?? 10)
const space = await workspace(tmpdir())
try {
  const crash = await crashTest(await space.make('durability'))
  for (let round = 1; round <= rounds; round++) {
    for (const victim of victims) {
      const { acknowledged, refused, recoveredMs } = await crash.round(victim)
      const recovered = `${Math.round(recoveredMs)} ms until it served again`
      console.log(
        `${round}. kill -9 of ${victim}: ${acknowledged} acknowledged, none lost, ${refused} answered 503, ${recovered}`,
      )
    }
  }
  await crash.end()
  console.log(`${rounds * victims.length} passed, 0 failed`)
} finally {
  await space.remove()
}
