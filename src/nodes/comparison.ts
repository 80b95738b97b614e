import type { App } from '../core/app.ts'
import { aliveMs } from '../db/migration/alive-nodes.ts'
import { readNodes } from './nodes.ts'

/** Warns if this node differs from the others. */
export function createComparison({ db, node, log }: App) {
  let timer: NodeJS.Timeout | undefined
  let isOver = false
  /** A row of the same name may be that of this node's killed predecessor, and is judged only if it is still written. */
  const compare = async (isAgain: boolean): Promise<void> => {
    const all = await readNodes(db.readOnly)
    const twins = all.filter((one) => one.alive && one.name === node.name && one.id !== node.id)
    if (isAgain || twins.length === 0) {
      for (const mark of all.find(({ id }) => id === node.id)?.marks ?? [])
        log.warn(
          { event: 'node_differs', mark },
          'this node differs from the others; `cellkeep nodes` shows how',
        )
    } else if (!isOver) {
      const seenAt = Math.max(...twins.map(({ seen_at }) => Date.parse(seen_at)))
      const silentMs = seenAt + aliveMs - db.clock.now()
      timer = setTimeout(() => void compare(true).catch(() => {}), silentMs + 500).unref()
    }
  }
  return {
    begin: () => compare(false),
    end: () => {
      isOver = true
      clearTimeout(timer)
    },
  }
}
