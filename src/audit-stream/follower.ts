import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../db/db.ts'
import type { StreamBody } from '../http/exchange.ts'
import { type Committed, verdictOf } from '../realtime/committed.ts'
import { at, type Connection } from '../realtime/connection.ts'
import { type Authority, lossOf } from './authority.ts'
import { type Blocks, closeBlock, gapBlock, keepAlive, opening, type StreamEnd, withRetry } from './blocks.ts'
import { createOutbox, type Outbox } from './outbox.ts'
import type { Page, Tail } from './tail.ts'

const keepAliveMs = 15_000
/** How long a stream that lost its authority waits for the audit row of that loss. */
const lastRowMs = 1_500
const retryMs = 1_000

type FollowerOptions = {
  tail: Tail
  clock: Clock
  authority: Authority
  /** Reads the authority again; rejects with the refusal. */
  authoriseAgain(held: Authority): Promise<Authority>
  /** Called once, when only queued blocks are left to send; `client_left`: no close block is sent. */
  onEnd(reason: StreamEnd | 'client_left'): void
}

/** One open audit stream: its position in the log, and what ends it. */
export class Follower {
  readonly connection: Connection
  readonly body: StreamBody
  /** True once `start` was called. */
  isStarted = false
  readonly #options: FollowerOptions
  readonly #outbox: Outbox
  readonly #quiet: NodeJS.Timeout
  readonly #leaveTail: () => void
  #held: Authority
  #position = 0
  /** False: it replays older rows at the client's pace. */
  #isLive = false
  #isEnded = false
  #isFirst = true
  /** The stream ends with this reason once it has sent everything up to `lastSeq`. */
  #ending: { reason: StreamEnd; lastSeq: number } | undefined
  #stalls = 0
  /** `tail.pauses()` when the authority was last read. */
  #pauses: number
  #disarm = (): void => {}
  #lastRow: NodeJS.Timeout | undefined

  constructor(options: FollowerOptions) {
    const { tail, authority } = options
    this.#options = options
    this.#held = authority
    this.#outbox = createOutbox(() => this.#end('client_left'))
    this.body = this.#outbox.body
    this.#quiet = setTimeout(() => this.#onQuiet(), keepAliveMs).unref()
    this.#leaveTail = tail.join()
    this.#pauses = tail.pauses()
    this.#outbox.push(opening)
    this.connection = {
      kind: 'stream',
      account_id: authority.account_id,
      credential: authority.credential,
      daemon: authority.daemon,
      actor_id: authority.actor_id,
      hear: (committed) => this.#hear(committed),
      leave: () => this.close('shutdown'),
      lost: (reason) => {
        if (reason === 'expired') this.close(reason)
        else void this.#lose(reason)
      },
    }
  }

  /** Starts after `after`, or at the newest row. Only the opening is sent before this. */
  start(after: number | undefined): void {
    this.isStarted = true
    if (this.#isEnded) return
    this.#arm()
    const { position } = this.#options.tail
    this.#position = after ?? position
    this.#isLive = this.#position >= position
    // The requested position may be in the future.
    if (this.#position > position) this.#skip(this.#position, position)
    this.#settle()
    void this.#run()
  }

  close(reason: StreamEnd): void {
    if (this.#isEnded) return
    this.#end(reason)
    const last = closeBlock(reason)
    this.#outbox.end(this.#isFirst ? withRetry(last) : last, reason === 'slow_consumer')
  }

  #put(blocks: Blocks): void {
    if (this.#isEnded) return
    if (this.#isLive && this.#outbox.isOver) return void this.close('slow_consumer')
    this.#outbox.push(this.#isFirst ? withRetry(blocks) : blocks)
    this.#isFirst = false
    this.#quiet.refresh()
  }

  /** A replay waits for its client instead of queueing; a client that reads nothing for two intervals is dropped. */
  #onQuiet(): void {
    if (!this.#isLive && !this.#outbox.isEmpty && ++this.#stalls > 1) this.close('slow_consumer')
    else this.#put(keepAlive)
  }

  async #run(): Promise<void> {
    const { tail } = this.#options
    while (!this.#isEnded) {
      const page = await tail.after(this.#position).catch(() => undefined)
      const isAllowed = await this.#isAllowed()
      if (this.#isEnded) return
      if (!page || !isAllowed) await delay(retryMs, undefined, { ref: false })
      else this.#take(page)
      if (this.#isLive) continue
      await this.#outbox.emptied()
      this.#stalls = 0
      this.#isLive = this.#position >= tail.position
    }
  }

  /** After a pause, reads the authority again before anything is sent: this node may have missed its end. */
  async #isAllowed(): Promise<boolean> {
    const pauses = this.#options.tail.pauses()
    if (pauses > this.#pauses) await this.#judge()
    return this.#pauses >= pauses
  }

  #take({ blocks, end, removed_seq }: Page): void {
    if (removed_seq > this.#position) {
      // The rows after the gap are read next: this page may begin with lower numbers, which retention has not removed
      // yet.
      this.#skip(this.#position, removed_seq)
    } else {
      if (blocks.count > 0) this.#put(blocks)
      this.#position = end
    }
    this.#settle()
  }

  #skip(after: number, to: number): void {
    this.#put(gapBlock(after, to))
    this.#position = to
  }

  #settle(): void {
    if (this.#ending && this.#position >= this.#ending.lastSeq) this.close(this.#ending.reason)
  }

  #hear({ closings }: Committed): void {
    const { actor_id } = this.#held
    const verdict = verdictOf(closings, this.#held)
    if (verdict === 'own' || verdict === 'rotated') void this.#lose('revoked')
    else if (
      closings.some((one) => one.kind === 'role' || (one.kind === 'actor' && one.actor_id === actor_id))
    )
      void this.#judge()
  }

  /** The change that ended the authority has committed an audit row; ends the stream once that row has been sent. */
  async #lose(reason: StreamEnd): Promise<void> {
    if (this.#ending || this.#isEnded) return
    if (this.#options.tail.pauses() > this.#pauses) return this.close(reason)
    const ending = { reason, lastSeq: Number.POSITIVE_INFINITY }
    this.#ending = ending
    this.#lastRow = setTimeout(() => this.close(reason), lastRowMs).unref()
    const { tail } = this.#options
    await tail.fresh().catch(() => {})
    ending.lastSeq = tail.position
    this.#settle()
  }

  async #judge(): Promise<void> {
    const pauses = this.#options.tail.pauses()
    try {
      this.#held = await this.#options.authoriseAgain(this.#held)
      this.#pauses = pauses
      this.#arm()
    } catch (error) {
      const reason = lossOf(error, this.#held, this.#options.clock)
      if (reason === 'expired') this.close(reason)
      else if (reason) await this.#lose(reason)
      else this.#judgeSoon()
    }
  }

  /** Rechecks when the admin grant expires; the hub handles the expiry of the credential. */
  #arm(): void {
    const { role_expires_at } = this.#held
    this.#disarm()
    if (this.#isEnded || role_expires_at === null) return
    const { clock } = this.#options
    // The database decides what has expired, and its clock is known only roughly here.
    if (Date.parse(role_expires_at) <= clock.now()) this.#judgeSoon()
    else this.#disarm = at(role_expires_at, clock, () => void this.#judge())
  }

  #judgeSoon(): void {
    this.#disarm()
    if (this.#isEnded) return
    const timer = setTimeout(() => void this.#judge(), retryMs).unref()
    this.#disarm = () => clearTimeout(timer)
  }

  #end(reason: StreamEnd | 'client_left'): void {
    if (this.#isEnded) return
    this.#isEnded = true
    clearTimeout(this.#quiet)
    this.#disarm()
    clearTimeout(this.#lastRow)
    this.#leaveTail()
    this.#options.onEnd(reason)
  }
}
