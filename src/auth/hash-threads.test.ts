import { readdirSync } from 'node:fs'
import { constants, getPriority } from 'node:os'
import { setImmediate as turn } from 'node:timers/promises'
import { hash, verify } from '@node-rs/argon2'
import { describe, expect, test } from 'vitest'
import { hashThreads } from './hash-threads.ts'

const cheap = { memoryCost: 64, timeCost: 1, parallelism: 1 }
const dear = { memoryCost: 65_536, timeCost: 4, parallelism: 1 }
const runHash = hashThreads(2)

describe('hashing threads', () => {
  test('compute what the library computes', async () => {
    const stored = await runHash('hash', 'a password', cheap)
    expect(await verify(stored, 'a password')).toBe(true)
    expect(await runHash('verify', await hash('other', cheap), 'other')).toBe(true)
    expect(await runHash('verify', stored, 'other')).toBe(false)
  })

  test('reject with what the library throws, and keep working', async () => {
    await expect(runHash('verify', 'no hash', 'x')).rejects.toThrow()
    expect(await runHash('verify', await hash('x', cheap), 'x')).toBe(true)
  })

  test('answer each of many concurrent jobs to its caller', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `password ${index}`)
    const stored = await Promise.all(names.map((name) => runHash('hash', name, cheap)))
    for (const [index, name] of names.entries()) expect(await verify(String(stored[index]), name)).toBe(true)
  })

  test.each([1, 2])(
    'work on %i at once and no more; what comes behind a long job waits for one',
    async (count) => {
      const run = hashThreads(count)
      const order: string[] = []
      const give = (name: string, cost: typeof cheap) => run('hash', 'x', cost).then(() => order.push(name))
      const long = Array.from({ length: count }, () => give('long', dear))
      await Promise.all([...long, ...Array.from({ length: count }, () => give('short', cheap))])
      expect(order[0]).toBe('long')
      // With a free thread the short job is done immediately.
      const spare = hashThreads(count + 1)
      order.length = 0
      const again = Array.from({ length: count }, () =>
        spare('hash', 'x', dear).then(() => order.push('long')),
      )
      await Promise.all([...again, spare('hash', 'x', cheap).then(() => order.push('short'))])
      expect(order[0]).toBe('short')
    },
  )

  test('answer in pairs when jobs pile up, and immediately otherwise', async () => {
    const doneWithFirst = async (count: number): Promise<number> => {
      const run = hashThreads(1)
      let done = 0
      const jobs = Array.from({ length: count }, () => run('hash', 'x', dear).then(() => done++))
      await jobs[0]
      await turn()
      const together = done
      await Promise.all(jobs)
      return together
    }
    expect([await doneWithFirst(2), await doneWithFirst(3), await doneWithFirst(4)]).toEqual([1, 2, 2])
  })

  test('leave the event loop free', async () => {
    let turns = 0
    const timer = setInterval(() => turns++, 1)
    await runHash('hash', 'x', dear)
    clearInterval(timer)
    expect(turns).toBeGreaterThan(3)
  })

  test.runIf(process.platform === 'linux')('run behind everything else', async () => {
    await runHash('hash', 'x', cheap)
    const below = readdirSync('/proc/self/task').filter(
      (thread) => getPriority(Number(thread)) === constants.priority.PRIORITY_BELOW_NORMAL,
    )
    expect(below.length).toBeGreaterThan(0)
    expect(getPriority()).toBeLessThan(constants.priority.PRIORITY_BELOW_NORMAL)
  })
})
