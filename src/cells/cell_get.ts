import { z } from 'zod'
import { query } from '../core/action.ts'
import { type Sql, sql } from '../db/db.ts'
import type { CellData } from '../registry/hooks.ts'
import { Uuid } from '../wire/types.ts'
import { me, tier } from './access.ts'
import { Cell, cellColumns, Path } from './cells.ts'
import { type Edges, edgeOrder, Field, fieldEdges, Item, itemEdges, visibleEdges } from './edges/edges.ts'

/** Edges returned per relation; `…_truncated` says whether there is another visible one. */
const edgesMax = 500

export const cell_get = query({
  doc: 'One cell by id or path, with its visible fields and items. Hidden and missing cells get the same response.',
  auth: { account: 'optional', actor: 'optional' },
  rate_limit: 'ip',
  rate_limit_group: 'cell_read',
  input: z.strictObject({ id: Uuid.optional(), path: Path.optional() }),
  output: z.object({
    cell: Cell,
    fields: z.array(Field),
    fields_truncated: z.boolean(),
    items: z.array(Item),
    items_truncated: z.boolean(),
    can_edit: z.boolean(),
    can_grant: z.boolean(),
  }),
  errors: ['cell_get_requires_id_or_path', 'cell_not_found'],
  refine(input, { fail }) {
    if ((input.id === undefined) === (input.path === undefined)) throw fail('cell_get_requires_id_or_path')
    return input
  },
  async handler({ id, path }, { actor, db, fail }) {
    // `path <> ''` is the condition of the partial index on all paths.
    const anchor = id === undefined ? sql`c.path = ${path} and c.path <> ''` : sql`c.id = ${id}::uuid`
    const caller = actor?.id ?? null
    const [alone] = await db.point<CellRow & { data: CellData | null }>(aloneStatement(caller, anchor))
    if (!alone) throw fail('cell_not_found')
    if (alone.data !== null) return answer(alone, none, none)
    const linked = await db.first<CellRow & { fields: Bundle<Field>; items: Bundle<Item> }>(
      linkedStatement(caller, anchor),
    )
    if (!linked) throw fail('cell_not_found')
    const { fields, items, ...row } = linked
    return answer(row, fields, items)
  },
})

type CellRow = Cell & { can_edit: boolean; can_grant: boolean }
type Bundle<T> = { edges: T[]; is_cut: boolean }

const none = { edges: [], is_cut: false }

function answer({ can_edit, can_grant, ...cell }: CellRow, fields: Bundle<Field>, items: Bundle<Item>) {
  return {
    cell,
    fields: fields.edges.slice(0, edgesMax),
    fields_truncated: fields.is_cut || fields.edges.length > edgesMax,
    items: items.edges.slice(0, edgesMax),
    items_truncated: items.is_cut || items.edges.length > edgesMax,
    can_edit,
    can_grant,
  }
}

const rights = sql`${tier.edit} as can_edit, ${tier.manage} as can_grant`

/**
 * The cell without its edges. If it has any, `data` is null and a second statement reads the whole: thousands of
 * edges may lead to hidden cells, and other reads on the shared connection must not wait for that.
 */
const aloneStatement = (caller: string | null, anchor: Sql): Sql => sql`
  with ${me(caller)}
  select c.id, c.kind, c.visibility, c.path, case
      when exists (select from cell_field where source_id = c.id) then null
      when exists (select from cell_item where parent_id = c.id) then null
      else c.data
    end as data, c.version, c.created_by, c.updated_by, c.created_at, c.updated_at, ${rights}
  from cell c, me where ${anchor} and ${tier.view}`

/** Reads the cell again together with its edges, so that both are from one snapshot. */
const linkedStatement = (caller: string | null, anchor: Sql): Sql => sql`
  with ${me(caller)}, anchor as (
    select ${cellColumns}, ${rights} from cell c, me where ${anchor} and ${tier.view}
  )
  select anchor.*, ${bundled(fieldEdges)} as fields, ${bundled(itemEdges)} as items
  from anchor`

/** The visible edges of the anchor as JSON, and whether there were too many to examine them all. */
function bundled(edges: Edges): Sql {
  const pairs = [edges.from, edges.key, edges.to].map((name) => `'${name}', e.${name}`).join(', ')
  const order = edgeOrder(edges).map((name) => `e.${name}`)
  const isEnd = sql.raw(`e.${edges.to} is null`)
  return sql`(
    select json_build_object('is_cut', coalesce(bool_or(${isEnd}), false), 'edges', coalesce(
      json_agg(json_build_object(${sql.raw(pairs)}, 'created_at', iso_timestamp(e.created_at))
        order by ${sql.raw(order.join(', '))}) filter (where not ${isEnd}), '[]'::json))
    from (${visibleEdges(edges, { anchor: sql`anchor.id`, size: edgesMax + 1 })}) e
  )`
}
