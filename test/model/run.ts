import assert from 'node:assert/strict'
import fc from 'fast-check'
import { reasonOf } from '../helpers/outcome.ts'
import type { Model, Who } from './access.ts'
import { cellAgrees, listsAgree } from './agreement.ts'
import { type Step, step } from './moves.ts'
import { planOf } from './rules.ts'
import { actorCount, build, pick, type SeedWorld, type Stage, seedWorld } from './world.ts'

/**
 * Random worlds, random operations in each, a look at the world after each operation, and at the end through
 * the eyes of everybody at every cell; `steps` is their mean number. What differs from the model is shrunk to a small world and few steps;
 * the message says by which seed and path it comes back.
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
    await Promise.all(model.cells.map((cell) => cellAgrees({ stage, model, who }, cell))).catch((error) => {
      throw new Error(`At the end, as ${who}: ${text(error)}`)
    })
}

const text = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** The operation, whose outcome must be that of the model, which then takes it over. */
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

/** The actor of the step, or the next one that the model allows it to. */
function callerOf(model: Model, { by, isAllowed, move }: Step): Who {
  if (!isAllowed) return by
  const others = Array.from({ length: actorCount }, (_, more) => ((by ?? 0) + more) % actorCount)
  const able = others.find((actor) => {
    const plan = planOf(model, actor, move)
    return plan && 'outcome' in plan && plan.outcome === 'ok'
  })
  return able ?? by
}
