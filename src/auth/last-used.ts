import { type Database, sql } from '../db/db.ts'
import type { Log } from '../log/log.ts'

/** The last use of a token is written at most this often. */
const intervalMs = 60_000
/** Uses are collected this long, so that a burst costs one statement. */
const gatherMs = 1_000

/** Records when and from where tokens were used, outside the request path; failures are only logged. */
export type LastUsed = {
  stamp(token_id: string, ip: string): void
  /** Writes what has been collected; called at shutdown. */
  flush(): Promise<void>
}

export function createLastUsed(db: Database, log: Log): LastUsed {
  const waiting = new Map<string, string>()
  const stamped = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let writing = Promise.resolve()

  const write = async (): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    if (waiting.size === 0) return
    const ids = [...waiting.keys()]
    const ips = [...waiting.values()]
    waiting.clear()
    try {
      // The statement checks the interval too, since other nodes stamp the same tokens. A later time is from before the
      // clock was set back.
      await db.run(sql`
        update api_token set last_used_at = now(), last_used_ip = used.ip
        from unnest(${ids}::text[], ${ips}::text[]) as used (id, ip)
        where api_token.id = used.id
          and (last_used_at is null
            or last_used_at not between now() - interval '1 minute' and now() + interval '1 second')`)
    } catch (error) {
      log.warn({ event: 'last_used', err: error }, 'the last use of tokens could not be recorded')
    }
    const old = performance.now() - intervalMs
    for (const [id, at] of stamped) if (at < old) stamped.delete(id)
  }

  return {
    stamp: (token_id, ip) => {
      const now = performance.now()
      if (now - (stamped.get(token_id) ?? -intervalMs) < intervalMs) return
      stamped.set(token_id, now)
      waiting.set(token_id, ip)
      timer ??= setTimeout(() => {
        writing = write()
      }, gatherMs).unref()
    },
    flush: async () => {
      await writing
      await write()
    },
  }
}
