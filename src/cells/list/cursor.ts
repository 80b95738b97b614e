import { sha256Hex } from '../../auth/secrets.ts'
import { type CursorKey, keyBytesMax } from '../../core/cursor.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { unplanned } from '../../db/unplanned.ts'
import { pathMax } from '../cells.ts'
import type { ListInput } from './branches.ts'

/**
 * Where a page by path ended: the path after the prefix, to which the cursor is bound anyway. If that is too long for a
 * cursor, the key holds as much as fits, the id of the cell whose row has the full path, and a digest that shows
 * whether that path has changed.
 */
export function pathKey(prefix: string, path: string, id: string): CursorKey {
  const rest = path.slice(prefix.length)
  if (fits([rest])) return [rest]
  const digest = sha256Hex(path).slice(0, digestLength)
  const points = [...rest]
  while (!fits([points.join(''), id, digest])) points.pop()
  return [points.join(''), id, digest]
}

const digestLength = 16

const fits = (key: CursorKey): boolean => Buffer.byteLength(JSON.stringify(key)) <= keyBytesMax

/** Where the next page begins, as values for its statement. */
export function behind(
  { path_prefix, order_by, order_direction }: Pick<ListInput, 'path_prefix' | 'order_by' | 'order_direction'>,
  after: CursorKey,
): readonly unknown[] {
  if (path_prefix !== undefined) return behindPath(path_prefix, order_direction, after)
  if (order_by !== 'updated_at') return after
  // With known values, branches that hardly ever run would look so cheap that PostgreSQL would plan each page anew.
  const [changed_at, id] = after as [string, string]
  return [unplanned(changed_at, 'timestamptz'), unplanned(id, 'uuid')]
}

/**
 * The path after which the next page begins. If the cell's path has changed or been removed meanwhile, the page begins
 * at the first path with the prefix in the cursor: it may repeat a cell, but never skips one.
 */
function behindPath(prefix: string, direction: 'asc' | 'desc', [rest, id, digest]: CursorKey): [Sql] {
  const path = `${prefix}${rest}`
  if (id === undefined) return [unplanned(path)]
  // Sorts after all paths with this prefix, since no path is longer.
  const end = `${path}${'\u{10ffff}'.repeat(pathMax)}`
  return [
    sql`coalesce((
      select path from cell where id = ${id}::uuid
        and left(encode(sha256(convert_to(path, 'UTF8')), 'hex'), ${sql.raw(digestLength)}) = ${digest ?? ''}
    ), ${unplanned(direction === 'asc' ? path : end)})`,
  ]
}
