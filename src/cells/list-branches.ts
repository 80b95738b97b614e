import { type Sql, sql } from '../db/sql.ts'
import { tier } from './access.ts'
import { granted } from './list-granted.ts'
import { type Scope, underPrefix } from './list-prefix.ts'
import {
  all,
  beyond,
  cellKey,
  columns,
  filters,
  inOrder,
  type ListInput,
  type Page,
  walk,
} from './list-walk.ts'

export type { ListInput }

/**
 * The sources of a page: public, own, granted; both visibilities for an admin. Each one is tied to an index
 * that holds only rows the caller may see. A planner free to choose takes the one on `kind` or `path` when
 * statistics favour it, and walks the hidden cells of others.
 */
export function branches(page: Page): Sql[] {
  const { actor_id, visibility, shared_with, created_by, isAdmin, ids } = page
  const isForeign = sql`c.created_by is distinct from ${actor_id}::uuid`
  if (ids) return [named(page, ids, shared_with ? [isForeign, tier.held] : [])]
  if (shared_with) return [granted(page, visibility ? [visibility] : ['public', 'private'], isForeign)]
  const open = (['public', 'private'] as const).filter(
    (one) => (visibility ?? one) === one && (isAdmin || one === 'public'),
  )
  const parts = open.map((visibility) => ofScope(page, { visibility, created_by }))
  if (!isAdmin && actor_id !== null && visibility !== 'public') {
    if ((created_by ?? actor_id) === actor_id)
      parts.push(ofScope(page, { visibility: 'private', created_by: actor_id }))
    if (created_by !== actor_id) parts.push(granted(page, ['private'], isForeign))
  }
  return parts.length > 0 ? parts : [nothing]
}

const nothing = sql`select c.id, c.created_at as key, c.data_bytes from cell c where false`

/** Cells by id: these are looked up, everything else filters them. */
const named = (page: Page, ids: string[], more: Sql[]): Sql => sql`(
  select c.id, ${cellKey(page).key} as key, c.data_bytes
  from (select ${columns} from cell c where c.id = any(${ids}::uuid[]) offset 0) c, me
  where ${all([tier.view, ...more, ...filters(page), ...beyond(page)])} ${inOrder(page)})`

/** For every scope there are indexes that begin with it: on the order, on kind and order, on the path. */
function ofScope(page: Page, scope: Scope): Sql {
  const { kind, path_prefix } = page
  if (path_prefix !== undefined) return underPrefix(page, path_prefix, scope)
  return walk(page, filters({ ...scope, kind }))
}
