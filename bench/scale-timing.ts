import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { type MannWhitney, mannWhitney } from './mann-whitney.ts'
import { median, shuffled } from './numbers.ts'

/** Milliseconds of refusals, for hidden cells and for cells that do not exist. */
export type TimingRow = MannWhitney & { name: string; hidden: number; missing: number; samples: number }

type Call = (params: object) => Promise<unknown>
/** How many cells are requested in turn. */
const different = 200

/** Measures whether the time of `cell_not_found` reveals a hidden cell; hidden and missing ones in random order. */
export async function timing(
  client: pg.Client,
  callers: ReadonlyMap<string, Call>,
  samples: number,
): Promise<TimingRow[]> {
  const { rows } = await client.query<{ id: string; path: string }>(`
    select id, path from cell
    where path is not null and visibility = 'private' and deleted_at is null
    order by path limit ${different}`)
  const found: TimingRow[] = []
  for (const [caller, call] of callers)
    for (const by of ['id', 'path'] as const) {
      const hidden = rows.map((row) => ({ [by]: row[by] }))
      // A missing path has the same length as the hidden one and is next to it in the index.
      const missing = rows.map((row) => ({ [by]: by === 'id' ? randomUUID() : `${row.path.slice(0, -1)}x` }))
      const kinds = Array.from({ length: 2 * samples }, (_, at) => at % 2 === 0)
      const times = { hidden: [] as number[], missing: [] as number[] }
      for (const isHidden of shuffled(kinds)) {
        const params = (isHidden ? hidden : missing)[Math.floor(Math.random() * rows.length)]
        const begun = performance.now()
        await call(params as object)
        times[isHidden ? 'hidden' : 'missing'].push(performance.now() - begun)
      }
      found.push({
        name: `${caller}, by ${by}`,
        ...mannWhitney(times.hidden, times.missing),
        ...{ hidden: median(times.hidden), missing: median(times.missing), samples },
      })
    }
  return found
}
