import { setTimeout as delay } from 'node:timers/promises'
import type { StreamBody } from '../http/edge.ts'
import { type Authority, lossOf } from './authority.ts'
import {
  type Blocks,
  closeBlock,
  eventBlocks,
  gapBlock,
  keepAlive,
  opening,
  type StreamEnd,
  withRetry,
} from './blocks.ts'
import { verdictOf } from './closings.ts'
import { at } from './expiry.ts'
import type { Committed, Connection } from './hub.ts'
import { createOutbox } from './outbox.ts'
import type { Reading, Tail } from './tail.ts'

const keepAliveMs = 15_000
/** How long a stream that has lost its authority waits for the row that says so. */
const lastRowMs = 1_500
const retryMs = 1_000

/** One open audit stream: where it is in the log, and what ends it (contract 1, section 12). */
export type Follower = {
  readonly connection: Connection
  readonly body: StreamBody
  /** Goes on after `after`, or from the newest row on; only from here does anything follow the opening. */
  start(after: number | undefined): void
  close(reason: StreamEnd): void
}

type FollowerOptions = {
  tail: Tail
  authority: Authority
  /** Reads the authority again; rejects with what refuses it. */
  authoriseAgain(held: Authority): Promise<Authority>
  /** Called once, when nothing follows any more but what waits already; `client_left` without a close block. */
  onEnd(reason: StreamEnd | 'client_left'): void
}

export function createFollower({ tail, authority, authoriseAgain, onEnd }: FollowerOptions): Follower {
  let held = authority
  let position = 0
  /** Handed every reading of the tail; before that, the stream reads for itself. */
  let isLive = false
  let isEnded = false
  let isFirst = true
  /** It ends with this reason as soon as it has sent all up to `lastSeq`. */
  let ending: { reason: StreamEnd; lastSeq: number } | undefined
  let stalls = 0
  let disarm = (): void => {}
  let lastRow: NodeJS.Timeout | undefined
  const outbox = createOutbox(() => end('client_left'))
  const quiet = setTimeout(onQuiet, keepAliveMs).unref()
  const unfollow = tail.follow((reading) => {
    if (isLive) take(reading)
  })
  outbox.push(opening)

  function put(blocks: Blocks): void {
    if (isEnded) return
    if (isLive && outbox.isOver) return void close('slow_consumer')
    outbox.push(isFirst ? withRetry(blocks) : blocks)
    isFirst = false
    quiet.refresh()
  }

  /** A stream that reads for itself waits for its client and piles nothing up; one that takes nothing must go. */
  function onQuiet(): void {
    if (!isLive && !outbox.isEmpty && ++stalls > 1) close('slow_consumer')
    else put(keepAlive)
  }

  function take(reading: Reading): void {
    if (reading.removed_seq > position) skip(position, reading.removed_seq)
    const { rows } = reading
    const isWhole = rows.length > 0 && (rows[0] as { seq: number }).seq > position
    const blocks = isWhole ? reading.blocks() : eventBlocks(rows.filter(({ seq }) => seq > position))
    if (blocks.count > 0) put(blocks)
    position = Math.max(position, reading.end)
    settle()
  }

  function skip(after: number, to: number): void {
    put(gapBlock(after, to))
    position = to
  }

  /** Reads up to where the tail is, at the pace of the client. */
  async function replay(after: number): Promise<void> {
    position = after
    let isAsked = true
    while (!isEnded) {
      const reading = await tail.read(position).catch(() => undefined)
      if (isEnded) return
      if (!reading) await delay(retryMs, undefined, { ref: false })
      // Only what was asked for can lie in the future; later the stream may well be ahead of the tail.
      else if (isAsked && position > reading.newest) skip(position, reading.newest)
      else {
        isAsked = false
        take(reading)
        await outbox.emptied()
        stalls = 0
        if (position >= tail.position) {
          isLive = true
          return
        }
      }
    }
  }

  function settle(): void {
    if (ending && position >= ending.lastSeq) close(ending.reason)
  }

  /** What took the authority left a row; it is committed, so the next reading has it. */
  async function lose(reason: StreamEnd): Promise<void> {
    if (ending || isEnded) return
    ending = { reason, lastSeq: Number.POSITIVE_INFINITY }
    lastRow = setTimeout(close, lastRowMs, reason).unref()
    await tail.fresh().catch(() => {})
    ending.lastSeq = tail.position
    settle()
  }

  async function judge(): Promise<void> {
    try {
      held = await authoriseAgain(held)
      arm()
    } catch (error) {
      const reason = lossOf(error, held)
      if (reason === 'expired') close(reason)
      else if (reason) await lose(reason)
      else again()
    }
  }

  /** Judges again when the admin grant expires; the hub tells when the credential does. */
  function arm(): void {
    const { role_expires_at } = held
    disarm()
    if (isEnded || role_expires_at === null) return
    // The clock of the database may be behind ours, and only it says what has expired.
    if (Date.parse(role_expires_at) <= Date.now()) again()
    else disarm = at(role_expires_at, judge)
  }

  function again(): void {
    disarm()
    if (!isEnded) disarm = at(new Date(Date.now() + retryMs).toISOString(), judge)
  }

  function close(reason: StreamEnd): void {
    if (isEnded) return
    end(reason)
    const last = closeBlock(reason)
    outbox.end(isFirst ? withRetry(last) : last, reason === 'slow_consumer')
  }

  function end(reason: StreamEnd | 'client_left'): void {
    if (isEnded) return
    isEnded = true
    clearTimeout(quiet)
    disarm()
    clearTimeout(lastRow)
    unfollow()
    onEnd(reason)
  }

  return {
    connection: {
      kind: 'stream',
      account_id: held.account_id,
      credential: held.credential,
      daemon: held.daemon,
      actor_id: held.actor_id,
      hear: ({ closings }: Committed) => {
        const isOwnActor = closings.some((one) => one.kind === 'actor' && one.actor_id === held.actor_id)
        if (verdictOf(closings, held) === 'own') void lose('revoked')
        else if (isOwnActor) void judge()
      },
      leave: () => close('shutdown'),
      lost: (reason) => {
        if (reason === 'expired') close(reason)
        else void lose(reason)
      },
    },
    body: outbox.body,
    start: (after) => {
      if (isEnded) return
      arm()
      if (after === undefined) {
        position = tail.position
        isLive = true
        settle()
      } else void replay(after)
    },
    close,
  }
}
