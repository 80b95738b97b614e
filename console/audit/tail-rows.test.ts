import { describe, expect, it } from 'vitest'
import type { AuditStreamItem } from '../../src/client/audit-stream.ts'
import type { Event } from '../api/event-rows.tsx'
import { createTail, kept } from './tail-rows.ts'

const rowOf = (seq: number) => ({ id: `${seq}`, seq }) as Event
const item = (seq: number) => ({ type: 'event', seq, method: 'note', params: rowOf(seq) }) as AuditStreamItem
const range = (from: number, until: number) => Array.from({ length: until - from + 1 }, (_, i) => from + i)
const seqs = (tail: ReturnType<typeof createTail>) =>
  tail.rows.map((row) => (row.kind === 'event' ? row.event.seq : row.kind))

/** One second per row, so that all are shown. */
function slowTail() {
  let seconds = 0
  return createTail(() => 1000 * seconds++)
}
const log =
  (until: () => number, asked: number[] = []) =>
  async (since: number) => {
    asked.push(since)
    return range(since + 1, Math.min(since + 200, until())).map(rowOf)
  }

describe('the rows of the tail', () => {
  it('are the newest five thousand, and never many more in memory', () => {
    const tail = slowTail()
    for (const seq of range(1, 7000)) {
      tail.take(item(seq))
      expect(tail.rows.length).toBeLessThanOrEqual(kept * 1.2)
    }
    expect(seqs(tail).slice(-kept)).toEqual(range(2001, 7000))
  })

  it('beyond two hundred in a second are counted, and go on in the next', () => {
    let time = 0
    const tail = createTail(() => time)
    for (const seq of range(1, 500)) tail.take(item(seq))
    time = 1000
    tail.take(item(501))
    expect(seqs(tail)).toEqual([...range(1, 200), 'more', 501])
    expect(tail.rows[200]).toEqual({ kind: 'more', count: 300, until: 500 })
  })

  it('come back complete after a pause, whatever came while they were read', async () => {
    const tail = slowTail()
    tail.take(item(1))
    tail.pause()
    for (const seq of range(2, 6001)) tail.take(item(seq))
    expect([tail.newer, seqs(tail)]).toEqual([6000, [1]])
    const asked: number[] = []
    let last = 6001
    const read = log(() => last, asked)
    await tail.resume(async (since) => {
      const rows = await read(since)
      // The stream reports one more row at once, and the log has yet another.
      if (last === 6001) tail.take(item(++last))
      if (last === 6002) last += 1
      return rows
    })
    expect(asked[0]).toBe(kept + 1)
    tail.take(item(6003))
    tail.take(item(6004))
    expect(seqs(tail)).toEqual(range(6004 - kept, 6004).slice(-tail.rows.length))
    expect(tail.newer).toBe(0)
  })

  it('say how many are left out after a very long pause, and where retention and the network left holes', async () => {
    const tail = slowTail()
    tail.take(item(1))
    tail.take({ type: 'gap', after: 1, resumed_after: 9 })
    tail.lost({ after: 9, wait_ms: 2001 })
    tail.pause()
    for (const seq of range(10, 20_000)) tail.take(item(seq))
    expect(tail.rows.slice(1)).toEqual([
      { kind: 'gap', from: 2, until: 9 },
      { kind: 'lost', after: 9, wait_s: 3 },
    ])
    await tail.resume(log(() => 20_000))
    expect(seqs(tail)).toEqual(range(20_001 - kept, 20_000))
  })

  it('stay paused when they cannot be read', async () => {
    const tail = slowTail()
    tail.pause()
    for (const seq of range(1, 6000)) tail.take(item(seq))
    await expect(tail.resume(() => Promise.reject(new Error('offline')))).rejects.toThrow('offline')
    expect(tail.isPaused).toBe(true)
    await tail.resume(log(() => 6000))
    expect(seqs(tail)).toEqual(range(1001, 6000))
  })
})
