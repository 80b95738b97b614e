import { afterEach, expect, it, vi } from 'vitest'
import type { Passwords } from '../auth/password.ts'
import { createCosts } from './costs.ts'

afterEach(() => vi.restoreAllMocks())

/** Hashes that take as many milliseconds as their text says, both by the clock and of the processor. */
function timed({ waits = 0, threads = 1 } = {}) {
  let [clock, used] = [0, 0]
  const verified: string[] = []
  vi.spyOn(performance, 'now').mockImplementation(() => clock)
  vi.spyOn(process, 'cpuUsage').mockImplementation((before) => ({
    user: used - (before?.user ?? 0),
    system: 0,
  }))
  const verify: Passwords['verify'] = async (stored = '') => {
    verified.push(stored)
    const ms = Number(/i=(\d+)/.exec(stored)?.[1] ?? 30)
    clock += waits + ms
    used += ms * 1000 * threads
    return false
  }
  return { costs: createCosts({ verify } as Passwords), verified }
}
const hash = (ms: number, salt = 'salt') => `$pbkdf2-sha256$i=${ms}$${salt}$key`

it('each cost is measured once, and the slowest that is taken makes the floor', async () => {
  const { costs, verified } = timed()
  expect(costs.floor()).toBe(0)
  for (const ms of [100, 301, 200]) expect(await costs.isBearable(hash(ms))).toBe(true)
  expect(await costs.isBearable(hash(100, 'another'))).toBe(true)
  expect(verified).toEqual(['', hash(100), hash(301), hash(200)])
  expect(costs.floor()).toBe(452)
})

it('what takes more than two seconds is refused, and does not count for the floor', async () => {
  const { costs, verified } = timed()
  expect(await costs.isBearable(hash(2001))).toBe(false)
  expect(await costs.isBearable(hash(2001, 'another'))).toBe(false)
  expect(await costs.isBearable(hash(2000))).toBe(true)
  expect(verified.filter((stored) => stored === hash(2001))).toHaveLength(1)
  expect(costs.floor()).toBe(3000)
})

it.each([
  ['the time in which others have the processor', { waits: 5000 }],
  ['what several threads do at the same time', { threads: 4 }],
])('%s does not count', async (_what, machine) => {
  const { costs } = timed(machine)
  expect(await costs.isBearable(hash(1000))).toBe(true)
  expect(costs.floor()).toBe(1500)
})
