import type pg from 'pg'

/**
 * Adds edges, audit rows and cells of a known shape to a world. Needs `pg_temp.u` and `pg_temp.id` of `world.ts`;
 * runs before foreign keys and indexes are restored.
 */

/** Cells of a known shape, by the name under which `idOf('cell', …)` finds them. */
export type ShapeName = (typeof shapes)[number]
const shapes = ['large_edges', 'empty_edges', 'popular', 'busy_parent', 'clone_root', 'quiet'] as const
/** Far cells of `large_edges` and `empty_edges`; each of the 500 is both a field and an item. */
const bundle = 500
const cloned = 1000

/** Edges with heavy tails: most cells have none, a few have many, and the oldest cells have the most links to them. */
export async function insertEdges(client: pg.Client, cells: number): Promise<void> {
  const count = (salt: number) => `floor(pg_temp.u(i, ${salt}) ^ 12 * 8)::int`
  const far = (salt: number) =>
    `pg_temp.id('cell', floor(pg_temp.u(i * 64 + n, ${salt}) ^ 3 * ${cells})::bigint)`
  await client.query(`
    insert into cell_field (source_id, name, target_id, created_at)
    select pg_temp.id('cell', i), 'field_' || n, ${far(21)}, now() - interval '1 day' * pg_temp.u(i, 22)
    from generate_series(0, ${cells - 1}) i cross join lateral generate_series(1, ${count(20)}) n`)
  await client.query(`
    insert into cell_item (parent_id, position, child_id, created_at)
    select pg_temp.id('cell', i), lpad(n::text, 4, '0'), ${far(24)}, now() - interval '1 day' * pg_temp.u(i, 25)
    from generate_series(0, ${cells - 1}) i cross join lateral generate_series(1, ${count(23)}) n`)
}

/** An audit row for the creation of every cell, on its timeline. */
export async function insertAudit(client: pg.Client, cells: number): Promise<void> {
  await client.query(`
    insert into audit_log (seq, event_type, outcome, metadata, cell_ids, created_at)
    select i + 1, 'cell_create', 'success', jsonb_build_object('cell_id', pg_temp.id('cell', i)),
      array[pg_temp.id('cell', i)], now() - interval '1 year'
    from generate_series(0, ${cells - 1}) i`)
  await client.query(`
    insert into audit_cell (cell_id, seq) select pg_temp.id('cell', i), i + 1 from generate_series(0, ${cells - 1}) i`)
  await client.query(`update audit_position set seq = ${cells}`)
}

/**
 * The shapes, all owned by `owner`: cells with 500 + 500 edges to targets of 100 kB and to empty ones; a public
 * cell that a quarter of all cells link to; a parent of a quarter of all cells; a tree of 1000 cells; a cell that no
 * audit row names.
 */
export async function insertShapes(client: pg.Client, cells: number, owner: string): Promise<void> {
  const named = (name: string) => `pg_temp.id('cell:${name}', 0)`
  const make = (name: string, count: number, data = `'{}'::jsonb`) => `
    insert into cell (id, visibility, data, data_bytes, created_by, created_at)
    select pg_temp.id('cell:${name}', i), case when '${name}' = 'popular' then 'public' else 'private' end, data,
      greatest(2, octet_length(data::text)), '${owner}', now() - interval '1 year'
    from generate_series(0, ${count - 1}) i cross join lateral (select ${data} as data offset 0) d`
  for (const name of shapes) await client.query(make(name, name === 'clone_root' ? cloned : 1))
  // Hashes, which do not compress.
  const text = `(select string_agg(md5(i || ':' || n), '') from generate_series(1, 3125) n)`
  await client.query('alter table cell alter column data set storage external')
  await client.query(make('large', bundle, `jsonb_build_object('text', ${text})`))
  await client.query('alter table cell alter column data set storage extended')
  await client.query(make('empty', bundle))
  for (const name of ['large', 'empty']) {
    await client.query(link('cell_field', named(`${name}_edges`), `pg_temp.id('cell:${name}', i)`, bundle))
    await client.query(link('cell_item', named(`${name}_edges`), `pg_temp.id('cell:${name}', i)`, bundle))
  }
  await client.query(
    link('cell_item', named('clone_root'), `pg_temp.id('cell:clone_root', i + 1)`, cloned - 1),
  )
  await client.query(
    link('cell_item', named('busy_parent'), `pg_temp.id('cell', i * 4)`, Math.floor(cells / 4)),
  )
  await client.query(`
    insert into cell_field (source_id, name, target_id)
    select pg_temp.id('cell', i * 4), 'popular', ${named('popular')} from generate_series(0, ${Math.floor(cells / 4) - 1}) i`)
}

const link = (table: 'cell_field' | 'cell_item', near: string, far: string, count: number): string => {
  const [from, key, to, value] =
    table === 'cell_field'
      ? ['source_id', 'name', 'target_id', `'f' || i`]
      : ['parent_id', 'position', 'child_id', `lpad(i::text, 8, '0')`]
  return `insert into ${table} (${from}, ${key}, ${to}) select ${near}, ${value}, ${far} from generate_series(0, ${count - 1}) i`
}
