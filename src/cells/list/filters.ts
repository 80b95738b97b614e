import { hasPrefix } from '../../db/prefix.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { unplanned } from '../../db/unplanned.ts'

/** The filters of a list as conditions on `cell c`. */

export type Visibility = 'private' | 'public'

export const all = (conditions: readonly Sql[]): Sql => sql.join(conditions, ' and ')

export const isVisibility = (visibility: Visibility): Sql => sql`c.visibility = ${sql.raw(`'${visibility}'`)}`

type Filters = {
  kind?: string | undefined
  visibility?: Visibility | undefined
  created_by?: string | undefined
  path_prefix?: string | undefined
}

/** The statement has only the filters that were given. */
export function filters({ kind, visibility, created_by, path_prefix }: Filters): Sql[] {
  const given: Sql[] = []
  if (kind !== undefined) given.push(sql`c.kind = ${unplanned(kind)}`)
  if (visibility !== undefined) given.push(isVisibility(visibility))
  if (created_by !== undefined) given.push(sql`c.created_by = ${unplanned(created_by, 'uuid')}`)
  if (path_prefix !== undefined) given.push(hasPrefix(sql`c.path`, path_prefix))
  return given
}
