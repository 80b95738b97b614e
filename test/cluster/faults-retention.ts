import { setTimeout as delay } from 'node:timers/promises'
import { auditStream } from '../../src/client/audit-stream.ts'
import { on } from '../helpers/twins.ts'
import type { Acts } from './faults.ts'
import type { World } from './world.ts'

/**
 * Ages the rows that every follower has read, up to the end of a partition, and keeps a copy for checks that count
 * rows.
 */
const aged = (position: number): string => `
  with old as (select max(upper) - 1 as seq from audit_partitions() where upper - 1 <= ${position}),
    kept as (
      insert into chaos.removed select audit_log.* from audit_log, old where audit_log.seq <= old.seq
      on conflict do nothing)
  update audit_log set created_at = created_at - interval '60 days' from old where audit_log.seq <= old.seq
  returning old.seq::float8 as upto`

export const retention: Acts[string] = {
  what: 'the older partitions of the audit log become too old, and are dropped',
  act: async ({ world, followers }) => {
    const { engine, options, fleet, violate } = world
    const limit = performance.now() + 60_000 * options.slack
    const inTime = async <T>(find: () => Promise<T | undefined>): Promise<T | undefined> => {
      for (; performance.now() < limit; await delay(500)) {
        const found = await find()
        if (found !== undefined) return found
      }
      return undefined
    }
    const upTo = await inTime(async (): Promise<number | undefined> => {
      const [row] = await on(engine.primary.url, 'set search_path = cellkeep', aged(followers.position))
      return row?.upto
    })
    if (upTo === undefined) return violate('I4', 'no follower has read a whole partition')
    const removed = await inTime(async () => {
      await fleet.run('cleanup')
      const rows = await on(
        engine.primary.url,
        'set search_path = cellkeep',
        `select removed_seq::float8 as seq from audit_position
         where removed_seq >= ${upTo} and not exists (select from audit_partitions() where upper <= ${upTo} + 1)`,
      )
      return rows[0]?.seq as number | undefined
    })
    if (removed === undefined) return violate('I4', `retention does not drop the rows up to ${upTo}`)
    await hearsOneGap(world, removed)
  },
}

/** A follower that returns after a long time hears of one gap, and then gets the rows after it. */
async function hearsOneGap({ client, adaToken: token, options, violate }: World, removed: number) {
  const signal = AbortSignal.timeout(60_000 * options.slack)
  const after = removed - 10
  const items: string[] = []
  try {
    for await (const item of auditStream(client({ token }), { after, signal })) {
      items.push(
        item.type === 'event'
          ? item.seq > removed
            ? 'row'
            : `row ${item.seq}`
          : `gap ${item.after} ${item.resumed_after}`,
      )
      if (items.length === 20) break
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  const [gap, ...rows] = items
  if (gap !== `gap ${after} ${removed}` || rows.length === 0 || rows.some((one) => one !== 'row'))
    violate('I4', `a stream after ${after}, with all removed up to ${removed}, got ${items.join(', ')}`)
}
