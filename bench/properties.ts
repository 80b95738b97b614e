import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { property } from '../test/model/run.ts'
import { openStage } from '../test/model/world.ts'
import { Started } from './processes.ts'

/**
 * `npm run bench:properties`: random worlds of cells with random moves, each compared with the model in
 * `test/model` after every step. Exits 1 on a counter-example, after shrinking it and printing the command that
 * reproduces it. Takes some 15 minutes on two free cores. Each lane is a service with its own database and the next
 * seed.
 */
const { values: flags } = parseArgs({
  options: {
    worlds: { type: 'string', default: '2000' },
    /** Mean number of steps per world. */
    steps: { type: 'string', default: '50' },
    lanes: { type: 'string', default: '3' },
    /** Defaults to a different one for each run. */
    seed: { type: 'string' },
    /** Path of a counter-example; runs only that one. */
    path: { type: 'string' },
    /** After this time the run stops and fails. */
    minutes: { type: 'string', default: '60' },
  },
})
const [worlds, steps] = [Number(flags.worlds), Number(flags.steps)]
const lanes = flags.path === undefined ? Number(flags.lanes) : 1
const seed = flags.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(flags.seed)
const progressEvery = 100

const started = new Started()
const begun = performance.now()
const seconds = (): string => `${((performance.now() - begun) / 1000).toFixed(0)} s`
let tried = 0
try {
  console.log(`${worlds} worlds of ${steps} steps on average, ${lanes} lanes, seed ${seed}`)
  const failed = (await Promise.all(Array.from({ length: lanes }, (_, at) => lane(seed + at)))).filter(
    Boolean,
  )
  console.log(failed.length === 0 ? `No counter-example in ${tried} worlds, ${seconds()}.` : 'It FAILED.')
  process.exitCode = failed.length === 0 ? 0 : 1
} finally {
  await started.close()
}

/** Runs the lane's share of the worlds; true if one of them differs, which is printed at once. */
async function lane(seed: number): Promise<boolean> {
  const stage = await openStage()
  started.add(() => stage.close())
  const counted = property(stage, steps).beforeEach(() => {
    if (++tried % progressEvery === 0) console.log(`${tried} worlds, ${seconds()}`)
  })
  const details = await fc.check(counted, {
    numRuns: Math.ceil(worlds / lanes),
    seed,
    ...(flags.path !== undefined && { path: flags.path }),
    interruptAfterTimeLimit: Number(flags.minutes) * 60_000,
    markInterruptAsFailure: true,
  })
  if (!details.failed) return false
  const again = `npm run bench:properties -- --seed ${seed} --path ${details.counterexamplePath} --steps ${steps}`
  const { errorInstance: error } = details
  const cause = details.interrupted ? 'Out of time.' : error instanceof Error ? error.message : String(error)
  console.log(`${fc.defaultReportMessage(details)}\n${cause}\nAgain: ${again}`)
  return true
}
