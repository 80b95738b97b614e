import { z } from 'zod'
import { query } from '../core/action.ts'
import { Uuid } from '../core/wire.ts'
import { type Sql, sql } from '../db/db.ts'
import { me, tier } from './access.ts'
import { Cell, cellColumns, Path } from './cells.ts'
import { type Edges, edgeOrder, Field, fieldEdges, Item, itemEdges, visibleEdges } from './edges.ts'

/** Edges shown per relation; the flag says whether one more visible edge exists. */
const edgesMax = 500

export const cell_get = query({
  doc: 'One cell by id or path, with its visible fields and items. Hidden and missing cells answer alike.',
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
    // What the index on all paths asks for besides.
    const anchor = id === undefined ? sql`c.path = ${path} and c.path <> ''` : sql`c.id = ${id}::uuid`
    const [row] = await db.point<Row>(sql`
      with ${me(actor?.id ?? null)}, anchor as (
        select ${cellColumns}, ${tier.edit} as can_edit, ${tier.manage} as can_grant
        from cell c, me where ${anchor} and ${tier.view}
      )
      select anchor.*, ${bundled(fieldEdges)} as fields,
        ${bundled(itemEdges)} as items
      from anchor`)
    if (!row) throw fail('cell_not_found')
    const { fields, items, can_edit, can_grant, ...cell } = row
    return {
      cell,
      fields: fields.slice(0, edgesMax),
      fields_truncated: fields.length > edgesMax,
      items: items.slice(0, edgesMax),
      items_truncated: items.length > edgesMax,
      can_edit,
      can_grant,
    }
  },
})

type Row = Cell & {
  fields: Field[]
  items: Item[]
  can_edit: boolean
  can_grant: boolean
}

/** The visible edges of the anchor as JSON. */
function bundled(edges: Edges): Sql {
  const pairs = [edges.from, edges.key, edges.to].map((name) => `'${name}', e.${name}`).join(', ')
  const order = sql.raw(
    edgeOrder(edges)
      .map((name) => `e.${name}`)
      .join(', '),
  )
  return sql`(
    select coalesce(json_agg(json_build_object(${sql.raw(pairs)}, 'created_at', iso_timestamp(e.created_at))
      order by ${order}), '[]'::json)
    from (${visibleEdges(edges, { anchor: sql`anchor.id`, size: edgesMax + 1 })}) e
  )`
}
