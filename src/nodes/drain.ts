import type { App } from '../core/app.ts'

/** How long live connections take to close once they have been told to. */
const settleMs = 250

/**
 * Carries out what operators want of this node: a drained node leaves load balancers, and its connections move to other
 * nodes.
 */
export function createDrain({ node, hub, config, log }: App, changed: () => void) {
  let leaving: NodeJS.Timeout | undefined
  let isGone = false
  const leave = (): void => {
    hub.leave()
    isGone = true
    // Most connections have closed by then. Written at once, so that `cellkeep nodes drain` need not wait for a
    // heartbeat.
    leaving = setTimeout(changed, settleMs).unref()
  }
  return {
    /** The live connections have been told to go. */
    isGone: () => isGone,
    heed: (wanted: string): void => {
      if ((wanted === 'drain') === node.isDrained || node.phase !== 'serving') return
      node.isDrained = !node.isDrained
      clearTimeout(leaving)
      isGone = false
      if (node.isDrained) leaving = setTimeout(leave, config.shutdown_delay_ms).unref()
      else hub.stay()
      log.info(node.isDrained ? 'an operator is draining this node' : 'an operator resumed this node')
      changed()
    },
    end: () => clearTimeout(leaving),
  }
}
