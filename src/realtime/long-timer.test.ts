import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { at } from './connection.ts'

const day = 86_400_000
beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const inDays = (days: number): string => new Date(Date.now() + days * day).toISOString()

it('acts at its time also beyond the 24.8 days that one timer holds, and not before', () => {
  const act = vi.fn()
  at(inDays(60), Date, act)
  vi.advanceTimersByTime(60 * day - 1)
  expect(act).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(act).toHaveBeenCalledOnce()
})

it('waits on where the clock of the database was set back meanwhile', () => {
  const act = vi.fn()
  let backMs = 0
  at(inDays(1), { now: () => Date.now() - backMs }, act)
  backMs = day
  vi.advanceTimersByTime(2 * day - 1)
  expect(act).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(act).toHaveBeenCalledOnce()
})

it('acts soon where the time has passed, never once it is cancelled', () => {
  const [past, cancelled] = [vi.fn(), vi.fn()]
  at(inDays(-1), Date, past)
  const cancel = at(inDays(30), Date, cancelled)
  vi.advanceTimersByTime(26 * day)
  cancel()
  vi.advanceTimersByTime(26 * day)
  expect(past).toHaveBeenCalledOnce()
  expect(cancelled).not.toHaveBeenCalled()
  expect(vi.getTimerCount()).toBe(0)
})
