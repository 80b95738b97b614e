import type { App } from '../core/app.ts'
import type { Deliver } from '../registry/messages.ts'
import { claimDue, pauseAfter } from './claim.ts'
import { deliverOne } from './deliver.ts'

const atOnce = 4
/** How often the outbox is read without a wake-up: messages of other nodes and of commands cause none. */
const pollMs = 15_000
/** How long a stop waits for what is being delivered. */
const stopMs = 5_000

/**
 * Delivers queued messages, on every node: when this node commits one, and at intervals. A message that was delivered,
 * but not recorded because the process died, is delivered again with the same id. The returned function stops it.
 */
export function startDelivery(app: App, deliver: Deliver | undefined): () => Promise<void> {
  if (!deliver) return async () => {}
  const running = new Set<Promise<void>>()
  const stopping = new AbortController()
  const cutting = new AbortController()
  let claiming: Promise<void> | undefined
  let isAsked = false

  const wake = (): void => {
    isAsked = true
    claiming ??= claim().finally(() => {
      claiming = undefined
    })
  }
  const claim = async (): Promise<void> => {
    try {
      while (isAsked && running.size < atOnce && !stopping.signal.aborted) {
        isAsked = false
        const rows = await claimDue(app, atOnce - running.size)
        for (const row of rows) run(row)
      }
    } catch (error) {
      app.log.error(
        { event: 'delivery_failed', err: error },
        'the outbox of messages cannot be read; trying again later',
      )
    }
  }
  const run = (row: Awaited<ReturnType<typeof claimDue>>[number]): void => {
    const job = deliverOne(app, deliver, row, cutting.signal)
      .then((outcome) => {
        if (outcome) app.observer.count('messages_total', row.purpose, outcome.state)
        if (outcome?.state === 'queued') setTimeout(wake, pauseAfter(row.attempts) * 1000).unref()
      })
      .catch((error) =>
        app.log.error(
          { event: 'delivery_failed', err: error, message_id: row.id },
          'a message waits for its next try',
        ),
      )
      .finally(() => {
        running.delete(job)
        wake()
      })
    running.add(job)
  }

  app.outbox.wake = wake
  const timer = setInterval(wake, pollMs).unref()
  wake()
  return async () => {
    clearInterval(timer)
    stopping.abort()
    app.outbox.wake = () => {}
    await claiming
    const cut = setTimeout(() => cutting.abort(), stopMs)
    await Promise.all(running)
    clearTimeout(cut)
  }
}
