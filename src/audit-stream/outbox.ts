import type { Sink, StreamBody } from '../http/exchange.ts'
import type { Blocks } from './blocks.ts'

/** How much a client may leave unread before it is too slow. */
const waitingMax = { blocks: 1000, bytes: 1_048_576 }

/** How long the client of an ended stream may take to read the rest. */
const lingerMs = 5_000

/** The queue between a stream and its client: blocks are sent at once while the client reads, else counted. */
export type Outbox = {
  readonly body: StreamBody
  push(blocks: Blocks): void
  /** More is waiting than allowed. */
  readonly isOver: boolean
  readonly isEmpty: boolean
  /** Resolves when the client has read everything or has left. */
  emptied(): Promise<void>
  /** Ends the body with `last`, after the queue or instead of it. */
  end(last: Blocks, discard: boolean): void
}

export function createOutbox(onGone: () => void): Outbox {
  let queue: Blocks[] = []
  let sink: Sink | undefined
  let cut = (): void => {}
  let isFull = false
  let isFlushing = false
  let isEnding = false
  let linger: NodeJS.Timeout | undefined
  let emptied: PromiseWithResolvers<void> | undefined
  /** Totals of the queue and of the chunk that filled the sink. */
  const waiting = { blocks: 0, bytes: 0 }

  const count = ({ count, bytes }: Blocks, sign: 1 | -1): void => {
    waiting.blocks += sign * count
    waiting.bytes += sign * bytes.byteLength
  }
  let inSink: Blocks | undefined

  function flush(): void {
    // A web stream may report `drained` during a write.
    if (!sink || isFull || isFlushing) return
    isFlushing = true
    while (queue.length > 0 && !isFull) {
      const next = queue.shift() as Blocks
      if (sink.write(next.bytes)) count(next, -1)
      else {
        isFull = true
        inSink = next
      }
    }
    isFlushing = false
    if (isFull) return
    emptied?.resolve()
    emptied = undefined
    if (!isEnding) return
    const ended = sink
    sink = undefined
    ended.end()
  }

  return {
    body: {
      open: (opened) => {
        sink = opened
        cut = opened.cut
        flush()
      },
      drained: () => {
        if (inSink) count(inSink, -1)
        inSink = undefined
        isFull = false
        flush()
      },
      gone: () => {
        clearTimeout(linger)
        sink = undefined
        queue = []
        emptied?.resolve()
        onGone()
      },
    },
    push: (blocks) => {
      if (isEnding) return
      queue.push(blocks)
      count(blocks, 1)
      flush()
    },
    get isOver() {
      return waiting.blocks > waitingMax.blocks || waiting.bytes > waitingMax.bytes
    },
    get isEmpty() {
      return queue.length === 0 && !isFull
    },
    emptied: () => {
      if (queue.length === 0 && !isFull) return Promise.resolve()
      emptied ??= Promise.withResolvers()
      return emptied.promise
    },
    end: (last, discard) => {
      if (discard) queue = []
      queue.push(last)
      isEnding = true
      linger = setTimeout(() => cut(), lingerMs).unref()
      flush()
    },
  }
}
