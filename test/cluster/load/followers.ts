import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { auditStream } from '../../../src/client/audit-stream.ts'
import { createLive } from '../../../src/client/live.ts'
import { on } from '../../helpers/twins.ts'
import { allRows, type World } from '../world.ts'
import { outcomeOf } from './cells.ts'

type Follower = { name: string; seqs: Map<number, string>; last: number }

/** Followers of the log by stream, list and export, and sockets of the shipped client, all through the faults; I4. */
export function followerLoad(world: World) {
  const { fleet, violate, adaToken: token, options } = world
  const abort = new AbortController()
  const follower = (name: string): Follower => ({ name, seqs: new Map(), last: 0 })
  const streams = [follower('stream 0'), follower('stream 1')]
  const [list, exported] = [follower('list'), follower('export')]
  const all = [...streams, list, exported]
  for (const stream of streams) void follow(stream).catch(() => {})

  const hear = (to: Follower, { seq, id }: { seq: number; id: string }): void => {
    if (seq <= to.last) violate('I4', `${to.name} got row ${seq} after ${to.last}`)
    to.last = seq
    to.seqs.set(seq, id)
  }
  async function follow(stream: Follower): Promise<void> {
    for await (const item of auditStream(world.client({ token }), { after: 0, signal: abort.signal }))
      if (item.type === 'event') hear(stream, { seq: item.seq, id: item.params.id })
      else violate('I4', `${stream.name} was told a gap from ${item.after} to ${item.resumed_after}`)
  }
  const reader = world.client({ token })
  const readList = async (): Promise<void> => {
    for (let input: object = { since_seq: list.last }; ; ) {
      const { events, next_cursor } = await reader.audit_log_list({ limit: 200, ...input })
      for (const event of events) hear(list, event)
      if (next_cursor === null) return
      input = { cursor: next_cursor }
    }
  }
  const readExport = async (): Promise<void> => {
    const { stdout } = await fleet.run('audit', 'export', '--since-seq', `${exported.last}`)
    for (const line of stdout) hear(exported, JSON.parse(line))
  }
  const quietly = (read: () => Promise<void>) => () =>
    read().catch((error) => {
      outcomeOf(error)
    })
  world.loop(0.2, quietly(readList))
  world.loop(0.02, readExport)

  /** Connects to the next node each time. */
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
      `select seq::int8, id from ${allRows} entries`,
    ) as Promise<{ seq: string | null; id: string }[]>

  return {
    /** Every follower has read the log up to here. */
    get position() {
      return Math.min(...all.map(({ last }) => last))
    },
    /** After the load: each follower got every row of the surviving history exactly once. */
    finish: async (): Promise<void> => {
      if (!(await until(async () => (await rows()).every(({ seq }) => seq !== null))))
        violate('I4', 'rows of the audit log got no number')
      const written = (await rows()).map(({ seq, id }) => ({ seq: Number(seq), id }))
      if (new Set(written.map(({ seq }) => seq)).size !== written.length)
        violate('I4', 'a number was given twice')
      await Promise.all([readList(), readExport()])
      const last = Math.max(...written.map(({ seq }) => seq))
      for (const { name, seqs } of all) {
        await until(() => seqs.has(last))
        const missing = written.filter(({ seq, id }) => seqs.get(seq) !== id)
        if (missing.length > 0)
          violate(
            'I4',
            `${name} lacks ${missing.length} of ${written.length} rows, such as ${JSON.stringify(missing[0])}`,
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
      followed: all.map(({ seqs }) => seqs.size),
      sockets_lost: sockets.reduce((sum, { lost }) => sum + lost, 0),
    }),
  }
}
