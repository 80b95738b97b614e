import { type Sql, sql } from '../db/sql.ts'
import { tier } from './access.ts'
import { granted } from './list-granted.ts'
import { underPrefix } from './list-prefix.ts'
import {
  all,
  beyond,
  cellKey,
  columns,
  filters,
  inOrder,
  isVisibility,
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
  const parts = open.map((one) => ofVisibility(page, one))
  if (!isAdmin && actor_id !== null && visibility !== 'public') {
    if ((created_by ?? actor_id) === actor_id) parts.push(ofCreator(page, actor_id, 'private'))
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

function ofVisibility(page: Page, visibility: string): Sql {
  const { created_by, kind, path_prefix } = page
  if (created_by !== undefined) return ofCreator(page, created_by, visibility)
  if (path_prefix !== undefined) return underPrefix(page, path_prefix, visibility)
  return walk(page, [isVisibility(visibility), ...filters({ kind })], [])
}

const ofCreator = (page: Page, created_by: string, visibility: string): Sql =>
  walk(
    page,
    [sql`c.created_by = ${created_by}::uuid`, isVisibility(visibility)],
    filters({ kind: page.kind, path_prefix: page.path_prefix }),
  )
