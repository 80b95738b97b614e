import { parseArgs } from 'node:util'
import { cellRaces } from '../test/helpers/cell-races.ts'
import { factorRaces, factorWorld } from '../test/helpers/factor-races.ts'
import { grantChangeRaces } from '../test/helpers/grant-change-races.ts'
import { offerEndingRaces } from '../test/helpers/grant-ending-races.ts'
import { grantRaceWorld, runGrantRace } from '../test/helpers/grant-race-tools.ts'
import { acceptRaces } from '../test/helpers/grant-races.ts'
import { races, raceWorld, runRace } from '../test/helpers/races.ts'

/**
 * `npm run bench:races`: runs every named race of identity, cells and role grants 500 times on a real database.
 * Prints how often each outcome occurred, which shows races that never hit the other order. Exits 1 on a
 * violation.
 */
const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '500' },
    /** Races whose name contains one of these comma-separated texts. */
    only: { type: 'string', default: '' },
  },
})

let violations = 0

async function runMany(name: string, run: () => Promise<string>): Promise<void> {
  if (!flags.only.split(',').some((text) => name.includes(text))) return
  const outcomes = new Map<string, number>()
  const began = performance.now()
  for (let round = 0; round < Number(flags.rounds); round++) {
    const outcome = await run().catch((error) => {
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

const world = await raceWorld()
try {
  for (const [name, race] of Object.entries({ ...races, ...cellRaces }))
    await runMany(name, () => runRace(world, race))
} finally {
  await world.close()
}

const factors = await factorWorld()
try {
  for (const [name, run] of Object.entries(factorRaces)) await runMany(name, () => run(factors))
} finally {
  await factors.close()
}

const grants = await grantRaceWorld()
try {
  const all = { ...acceptRaces, ...offerEndingRaces, ...grantChangeRaces }
  for (const [name, race] of Object.entries(all)) await runMany(name, () => runGrantRace(grants.world, race))
} finally {
  const deadlocks = await grants.close()
  console.log(`Deadlocks met by the races of role grants: ${deadlocks}.`)
  violations += deadlocks
}
console.log(violations === 0 ? 'No violation.' : `${violations} violations.`)
process.exitCode = violations === 0 ? 0 : 1
