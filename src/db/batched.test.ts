import { expect, test as it } from 'vitest'
import { batched } from './batched.ts'

/**
 * How many turns of the event loop pass while all callers of a batch go on with this many milliseconds of work each.
 */
async function turnsOf(workMs: number): Promise<number> {
  const read = batched(async (keys) => new Map(keys.map((key) => [key, key])))
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  const goOn = async (_: unknown, at: number): Promise<void> => {
    expect(await read(String(at))).toBe(String(at))
    if (at === 0) setImmediate(count)
    // As many steps as a call takes before it looks at its input.
    for (let depth = 0; depth < 20; depth++) await undefined
    for (const end = performance.now() + workMs; performance.now() < end; );
  }
  await Promise.all(Array.from({ length: 128 }, goOn))
  isOver = true
  return turns
}

it('other work has its turn while many of a batch go on with large inputs', async () => {
  expect(await turnsOf(2)).toBeGreaterThanOrEqual(6)
})
