import assert from 'node:assert/strict'
import fc from 'fast-check'
import { reasonOf } from '../helpers/outcome.ts'
import type { Model, Who } from './access.ts'
import { cellAgrees, listsAgree } from './agreement.ts'
import { type Step, step } from './moves.ts'
import { planOf } from './rules.ts'
import { actorCount, type Stage } from './stage.ts'
import { build, pick, type SeedWorld, seedWorld } from './world.ts'

/**
 * Builds random worlds and makes random moves in each. It checks the world after each move, and at the end every
 * cell and several lists as every caller. `steps` is the mean number of moves. A difference from the model is shrunk to a small
 * world and few steps; the message has the seed and path that reproduce it.
 */
export const property = (stage: Stage, steps: number) =>
  fc.asyncProperty(seedWorld, fc.array(step, { maxLength: 2 * steps, size: 'max' }), (seed, moves) =>
    live(stage, seed, moves),
  )

async function live(stage: Stage, seed: SeedWorld, steps: readonly Step[]): Promise<void> {
  const model = await build(stage, seed)
  for (const [nth, one] of steps.entries()) {
    try {
      await perform(stage, model, one)
      const view = { stage, model, who: one.watcher }
      await Promise.all([listsAgree(view, one), cellAgrees(view, pick(model, one.focus))])
    } catch (error) {
      throw new Error(`After step ${nth + 1}, ${JSON.stringify(one)}: ${text(error)}`)
    }
  }
  for (const who of [null, ...Array.from({ length: actorCount }, (_, actor) => actor)])
    await Promise.all([
      ...model.cells.map((cell) => cellAgrees({ stage, model, who }, cell)),
      ...steps.slice(-5).map((one) => listsAgree({ stage, model, who }, one)),
    ]).catch((error) => {
      throw new Error(`At the end, as ${who}: ${text(error)}`)
    })
}

const text = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Makes the move, compares the outcome with the model's, and applies it to the model. */
async function perform(stage: Stage, model: Model, step: Step): Promise<void> {
  const by = callerOf(model, step)
  const plan = planOf(model, by, step.move)
  if (plan === undefined) return
  if ('happen' in plan) {
    await plan.happen(stage)
    return
  }
  const params = typeof plan.params === 'function' ? plan.params(stage) : plan.params
  let answer: object | undefined
  const call = stage.call<object>(by, plan.method, params).then((given) => {
    answer = given
  })
  assert.equal(await reasonOf(call), plan.outcome, plan.method)
  if (answer === undefined) return
  assert.deepEqual({ ...answer, ...plan.answer }, answer, plan.method)
  await plan.apply?.(answer as never, stage)
}

/** The actor of the step, or the next one that the model allows to make its move. */
function callerOf(model: Model, { by, isAllowed, move }: Step): Who {
  if (!isAllowed) return by
  const others = Array.from({ length: actorCount }, (_, more) => ((by ?? 0) + more) % actorCount)
  const able = others.find((actor) => {
    const plan = planOf(model, actor, move)
    return plan && 'outcome' in plan && plan.outcome === 'ok'
  })
  return able ?? by
}
