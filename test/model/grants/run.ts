import assert from 'node:assert/strict'
import fc from 'fast-check'
import { heard } from '../../helpers/offers.ts'
import { reasonOf } from '../../helpers/outcome.ts'
import { actorCount, type Stage } from '../stage.ts'
import { explainedAlike, listsAgree } from './agreement.ts'
import { type Left, type Row, unstamped } from './expected.ts'
import { type Seed, type Step, seed, step } from './moves.ts'
import { type Actor, type Grant, roleNames, type World } from './roles.ts'
import { planOf } from './rules.ts'
import { build, pick } from './world.ts'

/**
 * Builds random worlds of role grants and makes random moves in each. After each move it compares the answer, the audit
 * rows, the notifications and what one actor reads with the model, and at the end what every actor reads. `steps` is
 * the mean number of moves.
 */
export const property = (stage: Stage, steps: number) => {
  const moves = fc.array(step, { maxLength: 2 * steps, size: 'max' })
  // Without a bias for small numbers, by which most moves would be by the same actor and for the same account.
  return fc.asyncProperty(fc.noBias(seed), fc.noBias(moves), (first, all) => live(stage, first, all))
}

async function live(stage: Stage, first: Seed, steps: readonly Step[]): Promise<void> {
  const world = await build(stage, first)
  const numbered = { seq: 0 }
  for (const [nth, one] of steps.entries()) {
    try {
      await perform(stage, world, one, numbered)
      const view = { stage, world, who: pick(world.actors, one.watcher) }
      await listsAgree(view, [pick(world.accounts, one.focus)], [pick(roleNames, one.focus)])
      const grant = pick(world.grants, one.focus) as Grant | undefined
      if (grant) await explainedAlike(view, grant)
    } catch (error) {
      throw new Error(`After step ${nth + 1}, ${JSON.stringify(one)}: ${text(error)}`)
    }
  }
  for (const who of world.actors)
    try {
      await listsAgree({ stage, world, who }, world.accounts, roleNames)
      await Promise.all(world.grants.map((grant) => explainedAlike({ stage, world, who }, grant)))
    } catch (error) {
      throw new Error(`At the end, as actor ${world.actors.indexOf(who)}: ${text(error)}`)
    }
}

const text = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const nothing: Left = { rows: [], told: [] }

/** Makes the move, applies it to the model, and compares all that the call has left. */
async function perform(stage: Stage, world: World, step: Step, numbered: { seq: number }): Promise<void> {
  const plan = planOf(world, callerOf(world, step), step.move)
  if (plan === undefined) return
  if ('happen' in plan) {
    await plan.happen(stage)
    return
  }
  let answer: unknown
  let outcome = ''
  const told = await heard(stage.test, async () => {
    const call = plan.call(stage).then((given) => {
      answer = given
    })
    outcome = await reasonOf(call)
  })
  assert.equal(outcome, plan.outcome, 'the outcome')
  const rows = await rowsSince(stage, numbered)
  const left = plan.effect?.({ answer, rows } as never) ?? nothing
  assert.deepEqual(unstamped({ answer, rows, told }), unstamped({ answer: undefined, ...left }))
}

/** The rows of the audit log after the last ones that were read. */
async function rowsSince({ test }: Stage, numbered: { seq: number }): Promise<Row[]> {
  const rows: Row[] = []
  const { operations } = test.service
  for await (const one of await operations.exportAudit({ since_seq: numbered.seq })) {
    const { seq, id: _, created_at: __, ip: ___, ...row } = one
    numbered.seq = seq
    rows.push(row)
  }
  return rows
}

/** Refusals that most actors get for most moves. */
const common = [
  'role_grant_offer_not_found',
  'role_grant_offer_not_authorized',
  'insufficient_permissions',
  'authentication_required',
  'actor_not_on_account',
]

/** The actor of the step, or the next one with which the move comes to what the step aims at. */
function callerOf(world: World, { by, aim, move }: Step): Actor {
  const inTurn = Array.from({ length: actorCount }, (_, more) => pick(world.actors, by + more))
  const fits = (actor: Actor): boolean => {
    const plan = planOf(world, actor, move)
    if (plan === undefined || !('outcome' in plan)) return false
    return aim === 'rare' ? plan.outcome !== 'ok' && !common.includes(plan.outcome) : plan.outcome === 'ok'
  }
  return (aim === 'any' ? undefined : inTurn.find(fits)) ?? pick(world.actors, by)
}
