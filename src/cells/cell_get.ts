import { z } from 'zod'
import { query } from '../core/action.ts'
import { Uuid } from '../core/wire.ts'
import { type Sql, sql } from '../db/db.ts'
import { me, tier, tiers } from './access.ts'
import { Cell, cellColumns, Path } from './cells.ts'

/** Edges shown per relation; the flag says whether one more visible edge exists. */
const edgesMax = 500

const Field = z.object({ source_id: Uuid, name: z.string(), target_id: Uuid, created_at: z.string() })
const Item = z.object({ parent_id: Uuid, position: z.string(), child_id: Uuid, created_at: z.string() })

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
    const anchor = id === undefined ? sql`c.path = ${path}` : sql`c.id = ${id}::uuid`
    const [row] = await db.point<Row>(sql`
      with ${me(actor?.id ?? null)}, anchor as (
        select ${cellColumns}, ${tier.edit} as can_edit, ${tier.manage} as can_grant
        from cell c, me where ${anchor} and ${tier.view}
      )
      select anchor.*, ${edges('cell_field', 'source_id', 'name', 'target_id')} as fields,
        ${edges('cell_item', 'parent_id', 'position', 'child_id')} as items
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
  fields: z.output<typeof Field>[]
  items: z.output<typeof Item>[]
  can_edit: boolean
  can_grant: boolean
}

/** The edges of the anchor whose far cell the caller may view, cut after that filter. */
function edges(table: string, from: string, key: string, to: string): Sql {
  const [edge, anchor, order, far] = [table, from, key, to].map((name) => sql.raw(name))
  return sql`(
    select coalesce(json_agg(json_build_object(${sql.raw(`'${from}', e.${from}, '${key}', e.${key}, '${to}', e.${to}`)},
      'created_at', iso_timestamp(e.created_at)) order by e.${order}), '[]'::json)
    from (
      select e.* from ${edge} e join cell far on far.id = e.${far}, me
      where e.${anchor} = anchor.id and ${tiers('far').view}
      order by e.${order} limit ${sql.raw(edgesMax + 1)}
    ) e
  )`
}
