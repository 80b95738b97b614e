import { parseArgs } from 'node:util'
import { endingRaces, raceWorld, runRace } from '../test/helpers/ending-races.ts'

/**
 * `npm run bench:races`: every race of accounts that end, 200 times each, on a real database. Prints how
 * often each outcome came, so that a race which never met the other order is seen; exits 1 on a violation.
 */
const { values: flags } = parseArgs({
  options: { rounds: { type: 'string', default: '200' }, only: { type: 'string', default: '' } },
})

const world = await raceWorld()
let violations = 0
try {
  for (const name of Object.keys(endingRaces).filter((name) => name.includes(flags.only))) {
    const outcomes = new Map<string, number>()
    const began = performance.now()
    for (let round = 0; round < Number(flags.rounds); round++) {
      const outcome = await runRace(world, name).catch((error) => {
        violations++
        return `VIOLATION ${error instanceof Error ? error.message : error}`
      })
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    }
    const seconds = Math.round((performance.now() - began) / 100) / 10
    console.log(`${name} (${flags.rounds} times, ${seconds} s)`)
    for (const [outcome, count] of [...outcomes].sort(([, a], [, b]) => b - a))
      console.log(`  ${String(count).padStart(4)}  ${outcome}`)
  }
} finally {
  await world.close()
}
console.log(violations === 0 ? 'No violation.' : `${violations} violations.`)
process.exitCode = violations === 0 ? 0 : 1
