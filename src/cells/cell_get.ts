import { z } from 'zod'
import { query } from '../core/declare.ts'
import { type JoinedRead, type Sql, sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { hasManyPrincipals, me, tier, tiersOfMany } from './access.ts'
import { Cell, cellColumns, cellText, Path } from './cells.ts'
import { dataBytesMax } from './data.ts'
import { type Edges, edgeOrder, Field, fieldEdges, Item, itemEdges, visibleEdges } from './edges/edges.ts'

/** Edges returned per relation; `…_truncated` says whether there is another visible one. */
const edgesMax = 500

export const cell_get = query({
  doc: 'One cell by id or path, with its visible fields and items, up to 500 of each; `fields_truncated` and `items_truncated` say that there may be more. Hidden and missing cells get the same response.',
  auth: { account: 'optional', actor: 'optional' },
  replica: true,
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
  json_text: true,
  async handler({ id, path }, { actor, role_grants, db, fail }) {
    const caller = actor?.id ?? null
    const { tier, byId, byPath } = hasManyPrincipals(role_grants) ? readsOfMany : reads
    const found = await db.joined(id === undefined ? byPath : byId, [caller, (id ?? path) as string])
    if (!found) throw fail('cell_not_found')
    const { cell, fields, items } = found
    if (cell !== null) return answer(cell, found, { text: fields ?? '[]' }, { text: items ?? '[]' })
    const anchor = id === undefined ? withPath(sql`${path}`) : withId(sql`${id}::uuid`)
    const large = await db.first<Large>(largeStatement(tier, caller, anchor))
    if (!large) throw fail('cell_not_found')
    return answer(large.cell, large, edgeList(large.fields), edgeList(large.items))
  },
})

type Rights = { can_edit: boolean; can_grant: boolean }
/** JSON text. `cell` is null if a separate statement must read it; `fields` and `items` are null if there are none. */
type Joined = Rights & { cell: string | null; fields: string | null; items: string | null }
type Large = Rights & { cell: string; fields: Bundle<Field>; items: Bundle<Item> }
type Bundle<T> = { edges: T[]; is_cut: boolean }
type EdgeList = { text: string; isCut?: boolean }

const edgeList = <T>({ edges, is_cut }: Bundle<T>): EdgeList => ({
  text: JSON.stringify(edges.slice(0, edgesMax)),
  isCut: is_cut || edges.length > edgesMax,
})

function answer(cell: string, { can_edit, can_grant }: Rights, fields: EdgeList, items: EdgeList): string {
  return `{"cell":${cell},"fields":${fields.text},"fields_truncated":${fields.isCut === true},"items":${items.text},"items_truncated":${items.isCut === true},"can_edit":${can_edit},"can_grant":${can_grant}}`
}

type Tiers = typeof tier
const rights = ({ edit, manage }: Tiers): Sql => sql`${edit} as can_edit, ${manage} as can_grant`

const withId = (id: Sql): Sql => sql`c.id = ${id}`
/** `path <> ''` is the condition of the partial index on all paths. */
const withPath = (path: Sql): Sql => sql`c.path = ${path} and c.path <> ''`

/** Max cells of a shared statement, and max bytes of data of each, so that no caller waits long for another's cell. */
const [joinedMax, joinedBytesMax] = [16, 32_768]
const [joinedText, largeText] = [cellText('c'), cellText('anchor')]

/** Max fields, and max items, of a cell in a shared statement. */
const fewMax = 8

/**
 * Cells with few edges, each for its caller. For one with more edges, or a large one among others, `cell` is null and
 * a second statement reads it: thousands of its edges may lead to hidden cells, and other reads on the shared
 * connection must not wait for that.
 */
const joinedRead = (
  type: 'uuid' | 'text',
  anchor: (key: Sql) => Sql,
  tier: Tiers,
): JoinedRead<[string | null, string], Joined> => ({
  max: joinedMax,
  statement: (keys) => sql`
    select asked.nth, one.* from
      unnest(${keys.map(([actor]) => actor)}::uuid[], ${keys.map(([, key]) => key)}::${sql.raw(type)}[])
        with ordinality as asked (actor_id, key, nth)
      cross join lateral (
        with ${me(sql`asked.actor_id`)}
        select
          case
            when c.data_bytes > ${keys.length > 1 ? joinedBytesMax : dataBytesMax} then null
            when greatest(fields.count, items.count) > ${fewMax} then null
            else ${joinedText}
          end as cell,
          ${rights(tier)}, ${few(fieldEdges, 'fields')} as fields, ${few(itemEdges, 'items')} as items
        from cell c, me, lateral (${counted(fieldEdges)}) fields, lateral (${counted(itemEdges)}) items
        where ${anchor(sql`asked.key`)} and ${tier.view}
      ) one`,
})
const counted = ({ table, from }: Edges): Sql =>
  sql`select count(*) from (select from ${sql.raw(`${table} where ${from}`)} = c.id limit ${fewMax + 1}) e`
/** The visible edges of `c` as JSON text; null if it has none, or more than `fewMax`. */
const few = (edges: Edges, counts: string): Sql =>
  sql`case when ${sql.raw(counts)}.count between 1 and ${fewMax} then (
    select coalesce(json_agg(${edgeJson(edges)}), '[]'::json)::text
    from (${visibleEdges(edges, { anchor: sql`c.id`, size: fewMax, isFew: true })}) e
  ) end`

/** Reads the cell again together with its edges, so that both are from one snapshot. */
const largeStatement = (tier: Tiers, caller: string | null, anchor: Sql): Sql => sql`
  with ${me(caller)}, anchor as (
    select ${cellColumns}, ${rights(tier)} from cell c, me where ${anchor} and ${tier.view}
  )
  select ${largeText} as cell, can_edit, can_grant, ${bundled(fieldEdges)} as fields,
    ${bundled(itemEdges)} as items
  from anchor`

const readsBy = (tier: Tiers) => ({
  tier,
  byId: joinedRead('uuid', withId, tier),
  byPath: joinedRead('text', withPath, tier),
})
/** With hundreds of principals to probe, a hidden cell would take measurably longer than a missing one. */
const [reads, readsOfMany] = [readsBy(tier), readsBy(tiersOfMany('c'))]

/** The visible edges of the anchor as JSON, and whether there were too many to examine them all. */
function bundled(edges: Edges): Sql {
  const order = edgeOrder(edges).map((name) => `e.${name}`)
  const isEnd = sql.raw(`e.${edges.to} is null`)
  return sql`(
    select json_build_object('is_cut', coalesce(bool_or(${isEnd}), false), 'edges', coalesce(
      json_agg(${edgeJson(edges)} order by ${sql.raw(order.join(', '))}) filter (where not ${isEnd}), '[]'::json))
    from (${visibleEdges(edges, { anchor: sql`anchor.id`, size: edgesMax + 1 })}) e
  )`
}

const edgeJson = ({ from, key, to }: Edges): Sql => {
  const pairs = [from, key, to].map((name) => `'${name}', e.${name}`).join(', ')
  return sql`json_build_object(${sql.raw(pairs)}, 'created_at', iso_timestamp(e.created_at))`
}
