import { describe, expect, test } from 'vitest'
import { createFairQueue } from './fair-queue.ts'

const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i))
const busy = { status: 503, data: { reason: 'busy', retry_after: 1 } }

/** A queue whose jobs end one by one, when the test says so, in the order in which they started. */
function setUp(ahead: number, capacity: number) {
  const queue = createFairQueue(ahead, capacity)
  const begun: { name: string; end: () => void }[] = []
  const give = (from: string, name = from): Promise<string> =>
    queue.run(from, async () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      begun.push({ name, end: resolve })
      await promise
      return name
    })
  /** Ends all jobs, and returns the order in which they started. */
  const drain = async (): Promise<string[]> => {
    const order: string[] = []
    for (let job = begun.shift(); job; job = begun.shift()) {
      order.push(job.name)
      job.end()
      await new Promise(setImmediate)
    }
    return order
  }
  return { queue, give, drain }
}

describe('jobs that wait', () => {
  test('of one source run in the order given', async () => {
    const { give, drain } = setUp(1, 10)
    const jobs = ['a', 'b', 'c', 'd'].map((name) => give('one', name))
    expect(await drain()).toEqual(['a', 'b', 'c', 'd'])
    expect(await Promise.all(jobs)).toEqual(['a', 'b', 'c', 'd'])
  })

  test('of several sources take turns: a source with one job does not wait for another’s fifty', async () => {
    const { give, drain } = setUp(2, 100)
    times(50, () => void give('crowd'))
    give('lone')
    give('pair')
    give('pair')
    const order = await drain()
    expect(order).toHaveLength(53)
    expect(order.indexOf('lone')).toBeLessThan(5)
    expect(order.lastIndexOf('pair')).toBeLessThan(8)
  })

  test('are refused only for the largest source when the queue is full: its newest job is evicted', async () => {
    const { queue, give, drain } = setUp(1, 10)
    const crowd = Promise.allSettled(times(10, (i) => give('crowd', `crowd ${i}`)))
    expect(queue.hasRoom()).toBe(false)
    await expect(give('crowd')).rejects.toMatchObject(busy)
    const others = times(4, (i) => give(`other ${i}`))
    expect(queue.size).toBe(10)
    expect((await drain()).slice(0, 6)).toEqual(['crowd 0', 'crowd 1', ...times(4, (i) => `other ${i}`)])
    expect(await Promise.all(others)).toHaveLength(4)
    const outcomes = (await crowd).map(({ status }) => status)
    expect(outcomes).toEqual([...Array(6).fill('fulfilled'), ...Array(4).fill('rejected')])
    expect((await crowd).at(-1)).toMatchObject({ reason: busy })
    expect([queue.size, queue.hasRoom()]).toEqual([0, true])
  })

  test('are not evicted by a source with as many jobs', async () => {
    const { give, drain } = setUp(1, 4)
    const first = give('a')
    const waiting = times(3, (i) => give(`b${i}`))
    await expect(give('c')).rejects.toMatchObject(busy)
    await drain()
    expect(await Promise.all([first, ...waiting])).toEqual(['a', 'b0', 'b1', 'b2'])
  })
})

test('a job that throws hands its place on, and leaves the queue intact', async () => {
  const queue = createFairQueue(1, 5)
  const jobs = times(5, (i) =>
    queue.run('one', async () => {
      if (i % 2 === 0) throw new Error('no memory')
      return i
    }),
  )
  const outcomes = await Promise.allSettled(jobs)
  expect(outcomes.map(({ status }) => status)).toEqual(
    times(5, (i) => (i % 2 === 0 ? 'rejected' : 'fulfilled')),
  )
  expect([queue.size, queue.hasRoom()]).toEqual([0, true])
})

test('a job that arrives when a place becomes free does not take it from those that wait', async () => {
  const { queue, give, drain } = setUp(1, 10)
  const early = times(3, (i) => give('a', `early ${i}`))
  const late = early[0]?.then(() => give('a', 'newcomer'))
  expect(await drain()).toEqual(['early 0', 'early 1', 'early 2', 'newcomer'])
  await Promise.all([...early, late])
  expect(queue.size).toBe(0)
})
