import { sql } from '../../src/db/db.ts'
import type { TestAccount, TestService } from '../../src/testing/index.ts'
import { cellRow, fieldRow, itemRow } from './cell-rows.ts'

/** The ids of cells by name. */
type Graph = Record<string, string>

/**
 * Inserts cells of `created_by` that hold their name as data; `cells` overrides columns. Of the edges between them,
 * `a name b` is a field of `a` that leads to `b`, and `a #1 b` an item of `a` at position 1.
 */
export async function graph(
  test: TestService,
  created_by: string,
  edges: readonly string[],
  cells: Record<string, Parameters<typeof cellRow>[1]> = {},
): Promise<Graph> {
  const ids: Graph = {}
  const parts = edges.map((edge) => edge.split(' ') as [from: string, label: string, to: string])
  for (const name of new Set([...parts.flatMap(([from, , to]) => [from, to]), ...Object.keys(cells)]))
    ids[name] = await cellRow(test, { created_by, data: { name }, ...cells[name] })
  for (const [from, label, to] of parts) {
    const [a, b] = [ids[from] as string, ids[to] as string]
    await (label.startsWith('#') ? itemRow(test, a, label.slice(1), b) : fieldRow(test, a, label, b))
  }
  return ids
}

/**
 * The graph that the caller sees from a cell, as edges between names; each cell is followed once. Cells with the
 * same name and different ids get different numbers after the name.
 */
export async function seen({ client }: TestAccount, root: string): Promise<string[]> {
  const names = new Map<string, string>()
  const edges: string[] = []
  const name = async (id: string): Promise<string> => {
    const known = names.get(id)
    if (known) return known
    const { cell, fields, items } = await client.cell_get({ id })
    const same = [...names.values()].filter((one) => one.split(' ')[0] === cell.data.name).length
    const own = `${cell.data.name}${same ? ` ${same + 1}` : ''}`
    names.set(id, own)
    for (const { name: label, target_id } of fields) edges.push(`${own} ${label} ${await name(target_id)}`)
    for (const { position, child_id } of items) edges.push(`${own} #${position} ${await name(child_id)}`)
    return own
  }
  await name(root)
  return edges.sort()
}

/** Inserts `count` cells of an actor below `root`, as items at five-digit positions; resolves to their ids. */
export async function children(
  { service }: TestService,
  root: string,
  count: number,
  created_by: string,
): Promise<string[]> {
  const rows = await service.app.db.rows<{ id: string }>(sql`
    with made as (
      insert into cell (data, data_bytes, created_by)
      select jsonb_build_object('n', n), 9 + length(n::text), ${created_by}::uuid
      from generate_series(1, ${count}::int) n returning id
    )
    insert into cell_item (parent_id, position, child_id)
    select ${root}::uuid, lpad((row_number() over ())::text, 5, '0'), id from made returning child_id as id`)
  return rows.map(({ id }) => id)
}

/** Inserts a chain of `count` cells below `root`, each an item of the previous one. */
export async function chain(
  { service }: TestService,
  root: string,
  count: number,
  created_by: string,
): Promise<void> {
  await service.app.db.run(sql`
    with made as (
      insert into cell (data, data_bytes, created_by)
      select '{}', 2, ${created_by}::uuid from generate_series(1, ${count}::int) returning id
    ), ordered as (select id, lag(id, 1, ${root}::uuid) over (order by id) as parent_id from made)
    insert into cell_item (parent_id, position, child_id) select parent_id, '1', id from ordered`)
}
