import { sha256Hex } from '../../auth/secrets.ts'
import { type CursorKey, keyBytesMax } from '../../core/cursor.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { unplanned } from '../../db/unplanned.ts'
import { pathMax } from '../cells.ts'
import type { ListInput } from './branches.ts'

/**
 * Where a page by path ended: the path after the prefix, to which the cursor is bound anyway. If that is too long
 * for a cursor, the key holds as much as fits, the id of the cell, whose row has the rest, and a digest that tells
 * whether it still has.
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
  // By its value, ways that are hardly ever taken would look so cheap that each page is planned anew.
  const [changed_at, id] = after as [string, string]
  return [unplanned(changed_at, 'timestamptz'), unplanned(id, 'uuid')]
}

/**
 * The path after which the next page begins. If the cell has another path meanwhile, or none, the page begins with all
 * paths that share what the cursor holds: it may repeat a cell, but never skips one.
 */
function behindPath(prefix: string, direction: 'asc' | 'desc', [rest, id, digest]: CursorKey): [Sql] {
  const path = `${prefix}${rest}`
  if (id === undefined) return [unplanned(path)]
  // Above all paths that begin so, since none is longer than that.
  const end = `${path}${'\u{10ffff}'.repeat(pathMax)}`
  return [
    sql`coalesce((
      select path from cell where id = ${id}::uuid
        and left(encode(sha256(convert_to(path, 'UTF8')), 'hex'), ${sql.raw(digestLength)}) = ${digest ?? ''}
    ), ${unplanned(direction === 'asc' ? path : end)})`,
  ]
}
