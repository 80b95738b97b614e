import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { property as grantProperty } from '../test/model/grants/run.ts'
import { openStage as grantStage } from '../test/model/grants/world.ts'
import { property as cellProperty } from '../test/model/run.ts'
import type { Stage } from '../test/model/stage.ts'
import { openStage as cellStage } from '../test/model/world.ts'
import { Started } from './processes.ts'

/**
 * `npm run bench:properties`: random worlds of cells, then of role grants and offers, with random moves, each compared
 * with the model in `test/model` after every step. Exits 1 on a counter-example, after shrinking it and printing the
 * command that reproduces it. Takes some 25 minutes on two free cores. Each lane is a service with its own database
 * and the next seed.
 */
const models: Record<string, Model> = {
  cells: { openStage: cellStage, property: cellProperty },
  grants: { openStage: grantStage, property: grantProperty },
}
type Model = {
  openStage(): Promise<Stage>
  property(stage: Stage, steps: number): fc.IAsyncPropertyWithHooks<[object, object[]]>
}
const { values: flags } = parseArgs({
  options: {
    /** `cells` or `grants`; defaults to one after the other. */
    model: { type: 'string' },
    /** Of each model. */
    worlds: { type: 'string', default: '2000' },
    /** Mean number of steps per world. */
    steps: { type: 'string', default: '50' },
    lanes: { type: 'string', default: '3' },
    /** Defaults to a different one for each run. */
    seed: { type: 'string' },
    /** Path of a counter-example; runs only that one. */
    path: { type: 'string' },
    /** After this time with one model, the run stops and fails. */
    minutes: { type: 'string', default: '60' },
  },
})
const [worlds, steps] = [Number(flags.worlds), Number(flags.steps)]
const lanes = flags.path === undefined ? Number(flags.lanes) : 1
const seed = flags.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(flags.seed)
const progressEvery = 100
const chosen = Object.keys(models).filter((name) => (flags.model ?? name) === name)
if (chosen.length === 0) throw new Error(`The models are ${Object.keys(models).join(' and ')}.`)

const started = new Started()
const begun = performance.now()
const seconds = (): string => `${((performance.now() - begun) / 1000).toFixed(0)} s`
let tried = 0
try {
  console.log(`${worlds} worlds of ${steps} steps on average, ${lanes} lanes, seed ${seed}`)
  let isFailed = false
  for (const model of chosen) {
    const done = await Promise.all(Array.from({ length: lanes }, (_, at) => lane(model, seed + at)))
    isFailed ||= done.includes(true)
  }
  console.log(isFailed ? 'It FAILED.' : `No counter-example in ${tried} worlds, ${seconds()}.`)
  process.exitCode = isFailed ? 1 : 0
} finally {
  await started.close()
}

/** Runs the lane's share of the worlds; true if one of them differs, which is printed at once. */
async function lane(model: string, seed: number): Promise<boolean> {
  const { openStage, property } = models[model] as Model
  const stage = await openStage()
  started.add(() => stage.close())
  const counted = property(stage, steps).beforeEach(() => {
    if (++tried % progressEvery === 0) console.log(`${tried} worlds, now of ${model}, ${seconds()}`)
  })
  const details = await fc.check(counted, {
    numRuns: Math.ceil(worlds / lanes),
    seed,
    ...(flags.path !== undefined && { path: flags.path }),
    interruptAfterTimeLimit: Number(flags.minutes) * 60_000,
    markInterruptAsFailure: true,
  })
  if (!details.failed) return false
  const again = `npm run bench:properties -- --model ${model} --seed ${seed} --path ${details.counterexamplePath} --steps ${steps}`
  const { errorInstance: error } = details
  const cause = details.interrupted ? 'Out of time.' : error instanceof Error ? error.message : String(error)
  console.log(`${fc.defaultReportMessage(details)}\n${cause}\nAgain: ${again}`)
  return true
}
