import { type CursorKey, keyBytesMax } from '../../core/cursor.ts'
import { afterPrefix, unplanned } from '../../db/prefix.ts'
import { type Sql, sql } from '../../db/sql.ts'

/**
 * Where a page by path ended: what follows the prefix, which the cursor is bound to anyhow. Of a path too long for
 * a cursor it holds as much as fits, and the cell, whose row still says the rest.
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
 * The path to go on behind. Where the cell has lost the path meanwhile, the page begins with all that share what
 * the cursor holds: rather a cell twice than one left out.
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
