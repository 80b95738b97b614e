import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { auditStream } from '../../../src/client/audit-stream.ts'
import { createLive } from '../../../src/client/live.ts'
import { on } from '../../helpers/twins.ts'
import type { World } from '../world.ts'

/** Streams and sockets of the shipped client that stay, whatever happens; I4. */
export function followerLoad(world: World) {
  const { fleet, violate, adaToken: token, options } = world
  const abort = new AbortController()
  const followers = [0, 1].map((n) => ({ n, seqs: new Map<number, string>(), last: 0 }))
  for (const follower of followers) void follow(follower).catch(() => {})

  async function follow(follower: (typeof followers)[number]): Promise<void> {
    for await (const item of auditStream(world.client({ token }), { after: 0, signal: abort.signal })) {
      if (item.type !== 'event') continue
      if (item.seq <= follower.last)
        violate('I4', `follower ${follower.n} got row ${item.seq} after ${follower.last}`)
      follower.last = item.seq
      follower.seqs.set(item.seq, item.params.id)
    }
  }

  /** Goes to the node that is next, each time it connects. */
  class Balanced extends WebSocket {
    constructor(address: string, options?: object) {
      super(
        address.replace(fleet.base.replace('http', 'ws'), fleet.pick().url.replace('http', 'ws')),
        options,
      )
    }
  }
  const sockets = [0, 1].map(() => {
    const live = createLive({ url: fleet.base, token }, { WebSocket: Balanced as never })
    const state = { live, lost: 0, isOpen: false }
    live.on('open', () => {
      state.isOpen = true
    })
    live.on('lost', () => {
      state.isOpen = false
      state.lost += 1
    })
    live.on('closed', (ending) => {
      if (!abort.signal.aborted) violate('I13', `a socket of a live credential ended for good: ${ending}`)
    })
    return state
  })

  const until = async (is: () => boolean | Promise<boolean>): Promise<boolean> => {
    const limit = performance.now() + 60_000 * options.slack
    while (performance.now() < limit) {
      if (await is()) return true
      await delay(100)
    }
    return false
  }
  const rows = () =>
    on(
      world.engine.primary.url,
      'set search_path = cellkeep',
      'select seq::int8, id from audit_entries() order by written',
    ) as Promise<{ seq: string | null; id: string }[]>

  return {
    /** After the load: every row of the history that survived has come to each follower, once. */
    finish: async (): Promise<void> => {
      if (!(await until(async () => (await rows()).every(({ seq }) => seq !== null))))
        violate('I4', 'rows of the audit log got no number')
      const all = (await rows()).map(({ seq, id }) => ({ seq: Number(seq), id }))
      if (new Set(all.map(({ seq }) => seq)).size !== all.length) violate('I4', 'a number was given twice')
      const last = Math.max(...all.map(({ seq }) => seq))
      for (const { n, seqs } of followers) {
        await until(() => seqs.has(last))
        const missing = all.filter(({ seq, id }) => seqs.get(seq) !== id)
        if (missing.length > 0)
          violate(
            'I4',
            `follower ${n} lacks ${missing.length} of ${all.length} rows, such as ${JSON.stringify(missing[0])}`,
          )
      }
      if (!(await until(() => sockets.every(({ isOpen }) => isOpen))))
        violate('I13', 'a socket did not come back')
    },
    close: (): void => {
      abort.abort()
      for (const { live } of sockets) live.close()
    },
    summary: () => ({
      streamed: followers.map(({ seqs }) => seqs.size),
      sockets_lost: sockets.reduce((sum, { lost }) => sum + lost, 0),
    }),
  }
}
