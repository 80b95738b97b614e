import { pageSize } from '../../core/page.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { tier } from '../access.ts'
import { cellNames } from '../cells.ts'
import { all } from './filters.ts'
import { keyNames, type Ordered } from './order.ts'

/** Pages of live cells from an index on cells that has the order of the list. */

type List = Ordered & { order_by: keyof typeof keyNames; limit: number; hasManyRoles: boolean }

/**
 * Only the columns of `cell c` that the wire form, the access rule and the merge need, because each step copies every
 * column. A large `data` is only a pointer until it is written out. `instead`: expressions that replace some of them.
 */
export const columns = ({ order_by }: List, instead?: Readonly<Record<string, Sql>>): Sql => {
  const { names, plain } = columnsOf[order_by]
  if (!instead) return plain
  const written = (name: string): Sql => {
    const given = instead[name]
    return given ? sql`${given} as ${sql.raw(name)}` : sql.raw(`c.${name}`)
  }
  return sql.join(names.map(written), ', ')
}

const namesWith = (key: string) => {
  const names = [...new Set([...cellNames, 'data_bytes', 'deleted_at', key])]
  return { names, plain: sql.raw(names.map((name) => `c.${name}`).join(', ')) }
}
/** Made once, since a statement has them several times. */
const columnsOf = {
  created_at: namesWith(keyNames.created_at),
  updated_at: namesWith(keyNames.updated_at),
  path: namesWith(keyNames.path),
}

export const via = ({ hasManyRoles }: List, principal: Sql): Sql =>
  hasManyRoles ? sql`, ${principal} as via` : sql.empty
/** The principal of cells that were found without a grant. */
export const nobody = sql`null::text`

/** One page, from the index that starts with these conditions. */
export const walk = (list: List, indexed: Sql[]): Sql => sql`(${walked(list, indexed)} ${list.limited})`

export const walked = (list: List, indexed: Sql[]): Sql => sql`
  select ${columns(list)}${via(list, nobody)}
  from cell c where ${all([tier.live, ...indexed, list.beyond])} ${list.inOrder}`

/** How many cells a walk examines before it gives up; this takes a third of the time of looking up as many grants. */
export const walkMax = 8_000

type Walks = {
  /** Common table expressions that the conditions read. */
  first: Sql[]
  /** Whether there are so many cells to look up that a walk may be shorter. */
  isMany: Sql
  /** The conditions of the indexes to walk. */
  starts: Sql[][]
  /** The other conditions. */
  rest: Sql[]
  /** Looks up all cells, if the walks did not run or gave up. */
  otherwise(isNeeded: Sql): Sql
}

/**
 * If looking up all cells is slow, a walk in the order of the list runs first, because it probably fills a page soon.
 */
export function walksFirst(list: List, { first, isMany, starts, rest, otherwise }: Walks): Sql {
  const max = sql.raw(walkMax)
  const walks = starts.map((indexed, at) => {
    const name = sql.raw(`walk_${at}`)
    return {
      name,
      found: sql`${name} as materialized (
        select c.* from (${walked(list, indexed)} limit ${max}) c, me
        where ${all([isMany, ...rest])} ${list.limited})`,
      // The page is full, or the walk reached the end of the index.
      isDone: sql`((select count(*) from ${name}) >= ${sql.raw(pageSize(list.limit))}
        or not exists (${walked(list, indexed)} limit 1 offset ${max}))`,
    }
  })
  const isNeeded = sql`not (select is_done from walks_end)`
  const isDone = all([isMany, ...walks.map((one) => one.isDone)])
  const ctes = [
    ...first,
    ...walks.map(({ found }) => found),
    sql`walks_end as materialized (select ${isDone} as is_done)`,
  ]
  const pages = walks.map(({ name }) => sql`select * from ${name} where not ${isNeeded}`)
  return sql`(with ${sql.join(ctes, ', ')} ${sql.join([...pages, otherwise(isNeeded)], ' union all ')})`
}
