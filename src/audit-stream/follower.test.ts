import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { AuditEvent } from '../audit/entry.ts'
import { createClock } from '../db/clock.ts'
import type { Authority } from './authority.ts'
import { eventBlocks } from './blocks.ts'
import { Follower } from './follower.ts'
import type { Page, Tail } from './tail.ts'

// Fake timers: these rules are about time.
beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const authority: Authority = {
  account_id: 'a',
  credential: { type: 'session', id: 's', scope: { kind: 'full' }, expires_at: null, strong: false },
  actor_id: 'b',
  role_expires_at: null,
}

/** A stream on a fake tail, whose client reads chunks until told to stop. */
function stream({ fresh = async () => {}, log = [] as Page[] } = {}) {
  let members = 0
  let next = Promise.withResolvers<Page>()
  const tail: Tail = {
    join: () => {
      members++
      return () => void members--
    },
    fresh,
    after: async () => log.shift() ?? next.promise,
    position: log.length * 100,
    pauses: () => 0,
    end: async () => {},
  }
  const ends: string[] = []
  const follower = new Follower({
    tail,
    clock: createClock(),
    authority,
    authoriseAgain: async (held) => held,
    onEnd: (reason) => void ends.push(reason),
  })
  const client = { text: '', reads: true, over: '' }
  follower.body.open({
    write: (chunk) => {
      client.text += Buffer.from(chunk).toString()
      return client.reads
    },
    end: () => {
      client.over = 'ended'
      follower.body.gone()
    },
    cut: () => {
      client.over = 'cut'
      follower.body.gone()
    },
  })
  const hand = async (page: Page): Promise<void> => {
    const { resolve } = next
    next = Promise.withResolvers()
    resolve(page)
    await vi.advanceTimersByTimeAsync(0)
  }
  return { follower, client, ends, hand, members: () => members }
}

function page(first: number, last: number, bytes = 0): Page {
  const nobody = {
    actor_id: null,
    account_id: null,
    target_account_id: null,
    target_actor_id: null,
    ip: null,
  }
  const rows = Array.from(
    { length: first > 0 ? last - first + 1 : 0 },
    (_, index): AuditEvent => ({
      id: 'id',
      seq: first + index,
      event_type: 'note',
      outcome: 'success',
      ...nobody,
      created_at: '2026-01-01T00:00:00.000Z',
      metadata: { text: 'x'.repeat(bytes) },
    }),
  )
  return { blocks: eventBlocks(rows), end: last, removed_seq: 0, age: null }
}

describe('keep-alive', () => {
  it('comes after 15 s without another block, and each block begins the 15 s anew', async () => {
    const { follower, client, hand } = stream()
    follower.start(undefined)
    expect(client.text).toBe(': connected\n\n')
    vi.advanceTimersByTime(14_999)
    expect(client.text).toBe(': connected\n\n')
    vi.advanceTimersByTime(1)
    expect(client.text).toBe(': connected\n\nretry: 3000\n: keep-alive\n\n')
    client.text = ''
    vi.advanceTimersByTime(10_000)
    await hand(page(1, 1))
    expect(client.text).toMatch(/^id: 1\ndata: .*\n\n$/)
    client.text = ''
    vi.advanceTimersByTime(14_999)
    expect(client.text).toBe('')
    vi.advanceTimersByTime(15_001)
    expect(client.text).toBe(': keep-alive\n\n: keep-alive\n\n')
  })
})

describe('a client that does not read', () => {
  const closed = 'event: close\ndata: {"reason":"slow_consumer"}\n\n'

  it('may leave 1000 blocks waiting, not one more; what waited is dropped for the close block', async () => {
    const { follower, client, ends, hand } = stream()
    follower.start(undefined)
    client.reads = false
    for (let seq = 1; seq <= 1001; seq++) await hand(page(seq, seq))
    expect(ends).toEqual([])
    await hand(page(1002, 1002))
    expect(ends).toEqual(['slow_consumer'])
    client.reads = true
    client.text = ''
    follower.body.drained()
    expect(client).toMatchObject({ text: closed, over: 'ended' })
  })

  it('may leave 1 MiB waiting', async () => {
    const { follower, client, ends, hand } = stream()
    follower.start(undefined)
    client.reads = false
    for (let seq = 1; seq <= 3; seq++) await hand(page(seq, seq, 400_000))
    expect(ends).toEqual([])
    await hand(page(4, 4))
    expect(ends).toEqual(['slow_consumer'])
  })

  it('loses nothing else by a pause: what waited comes in order', async () => {
    const { follower, client, ends, hand } = stream()
    follower.start(undefined)
    client.reads = false
    for (let seq = 1; seq <= 900; seq++) await hand(page(seq, seq))
    client.reads = true
    follower.body.drained()
    expect(ends).toEqual([])
    expect([...client.text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id))).toEqual(
      Array.from({ length: 900 }, (_, i) => i + 1),
    )
  })

  it('stops the reading of a replay, and is closed when it takes nothing for long', async () => {
    const log = [page(1, 200), page(201, 400), page(401, 600)]
    const { follower, client, ends } = stream({ log })
    client.reads = false
    follower.start(0)
    await vi.advanceTimersByTimeAsync(29_000)
    expect(log).toHaveLength(2)
    expect(ends).toEqual([])
    await vi.advanceTimersByTimeAsync(2_000)
    expect(ends).toEqual(['slow_consumer'])
    expect(log).toHaveLength(2)
  })

  it('is cut when it has not read the end within 5 s', async () => {
    const { follower, client, ends, hand } = stream()
    follower.start(undefined)
    client.reads = false
    await hand(page(1, 1))
    follower.close('shutdown')
    vi.advanceTimersByTime(4_999)
    expect(client.over).toBe('')
    vi.advanceTimersByTime(1)
    expect(client.over).toBe('cut')
    expect(ends).toEqual(['shutdown'])
  })
})

describe('the last row', () => {
  it('is waited for no longer than the 2 s within which a stream must be closed', async () => {
    const { follower, client, ends, members } = stream({ fresh: () => new Promise<void>(() => {}) })
    follower.start(undefined)
    follower.connection.lost('revoked')
    await vi.advanceTimersByTimeAsync(1_000)
    expect(ends).toEqual([])
    await vi.advanceTimersByTimeAsync(900)
    expect(ends).toEqual(['revoked'])
    expect(client.text.endsWith('event: close\ndata: {"reason":"revoked"}\n\n')).toBe(true)
    expect(members()).toBe(0)
  })
})
