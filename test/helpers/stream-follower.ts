import { auditStream } from '../../src/client/audit-stream.ts'
import type { TestService } from '../../src/testing/index.ts'
import { cuttingProxy } from './cutting-proxy.ts'
import type { Follower } from './followers.ts'

type StreamFollowing = {
  headers: Record<string, string>
  /** The number of times its connection is cut, spread evenly over this many rows. */
  reconnects: number
  rows: number
}

/** Follows the log from its beginning with the audit stream client, over connections that are cut. */
export const streamFollower = (
  { url }: Pick<TestService, 'url'>,
  { headers, reconnects, rows }: StreamFollowing,
): Follower & { cuts(): number } => {
  let cuts = 0
  return {
    name: `audit stream, cut ${reconnects} times`,
    cuts: () => cuts,
    run: async ({ hear, isDone }) => {
      const proxy = await cuttingProxy(url)
      const done = new AbortController()
      // The last row may be read before its writer knows that it was committed.
      const look = setInterval(() => {
        if (isDone()) done.abort(new Error('everything was heard'))
      }, 50)
      let heard = 0
      try {
        for await (const item of auditStream({ url: proxy.url, headers, after: 0, signal: done.signal })) {
          if (item.type === 'gap') throw new Error(`a gap behind ${item.after}`)
          hear(item.params)
          heard += 1
          if (cuts < reconnects && heard >= ((cuts + 1) * rows) / (reconnects + 1)) {
            cuts += 1
            proxy.cut()
          }
        }
      } catch (error) {
        if (!done.signal.aborted) throw error
      } finally {
        clearInterval(look)
        await proxy.close()
      }
    },
  }
}
