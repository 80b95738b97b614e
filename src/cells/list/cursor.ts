import { type CursorKey, keyBytesMax } from '../../core/cursor.ts'
import { afterPrefix } from '../../db/prefix.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { unplanned } from '../../db/unplanned.ts'

/**
 * Where a page by path ended: the path after the prefix, to which the cursor is bound anyway. If that is too long
 * for a cursor, the key holds as much as fits and the id of the cell, whose row has the rest.
 */
export function pathKey(prefix: string, path: string, id: string): CursorKey {
  const rest = path.slice(prefix.length)
  if (fits([rest])) return [rest]
  const points = [...rest]
  while (!fits([points.join(''), id])) points.pop()
  return [points.join(''), id]
}

const fits = (key: CursorKey): boolean => Buffer.byteLength(JSON.stringify(key)) <= keyBytesMax

/**
 * The path after which the next page begins. If the cell has lost its path meanwhile, the page begins with all
 * paths that share what the cursor holds: it may repeat a cell, but never skips one.
 */
export function behindPath(prefix: string, direction: 'asc' | 'desc', [rest, id]: CursorKey): [Sql] {
  const path = `${prefix}${rest}`
  if (id === undefined) return [unplanned(path)]
  const end = afterPrefix(path)
  return [
    sql`coalesce((
      select path from cell where id = ${id}::uuid and path >= ${path} ${end === undefined ? sql.empty : sql`and path < ${end}`}
    ), ${unplanned(direction === 'asc' ? path : `${path}\u{10ffff}`)})`,
  ]
}
