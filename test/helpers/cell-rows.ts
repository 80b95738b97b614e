import { type Sql, sql } from '../../src/db/db.ts'
import type { TestService } from '../../src/testing/index.ts'

type Test = Pick<TestService, 'service'>

type CellRow = {
  id?: string
  kind?: string | null
  visibility?: 'private' | 'public'
  path?: string | null
  data?: object
  created_by?: string | null
  /** ISO text; left out: now. */
  created_at?: string
  updated_at?: string | null
  deleted_at?: string | null
}

/** Inserts a cell as a row, for states that no method produces; resolves to its id. */
export async function cellRow({ service }: Test, row: CellRow = {}): Promise<string> {
  const { kind = null, visibility = 'private', path = null, data = {}, created_by = null } = row
  const written = await service.app.db.first<{ id: string }>(sql`
    insert into cell (id, kind, visibility, path, data, data_bytes, created_by, created_at, updated_at, deleted_at)
    values (coalesce(${row.id ?? null}::uuid, gen_random_uuid()), ${kind}, ${visibility}, ${path},
      ${JSON.stringify(data)}::jsonb, ${Buffer.byteLength(JSON.stringify(data))}, ${created_by}::uuid,
      coalesce(${row.created_at ?? null}::timestamptz, now()), ${row.updated_at ?? null}::timestamptz,
      ${row.deleted_at ?? null}::timestamptz)
    returning id`)
  return (written as { id: string }).id
}

/** Inserts many cells at once: `columns` are select items over `i`, which counts from 1. */
export const cellRows = ({ service }: Test, count: number, columns: Record<string, Sql>): Promise<number> =>
  service.app.db.run(sql`
    insert into cell (data, data_bytes, ${sql.raw(Object.keys(columns).join(', '))})
    select '{}'::jsonb, 2, ${sql.join(Object.values(columns), ', ')} from generate_series(1, ${count}::int) i`)

/** Counts the cells that were inserted as rows, as the methods do. */
export const countedUsage = ({ service }: Test): Promise<number> =>
  service.app.db.run(sql`
    insert into cell_usage (account_id, shard, cells, bytes)
    select account_id, 0, count(*), sum(data_bytes) from cell join actor on actor.id = cell.created_by group by account_id
    on conflict (account_id, shard) do update set cells = excluded.cells, bytes = excluded.bytes`)

export const fieldRow = ({ service }: Test, source_id: string, name: string, target_id: string) =>
  service.app.db.run(sql`
    insert into cell_field (source_id, name, target_id) values (${source_id}, ${name}, ${target_id})`)

export const itemRow = ({ service }: Test, parent_id: string, position: string, child_id: string) =>
  service.app.db.run(sql`
    insert into cell_item (parent_id, position, child_id) values (${parent_id}, ${position}, ${child_id})`)

/** Ends every grant of a role to an actor, as a revoke does. */
export const endRole = ({ service }: Test, actor_id: string, role: string) =>
  service.app.db.run(sql`
    update role_grant set revoked_at = now()
    where actor_id = ${actor_id} and role = ${role} and revoked_at is null`)

/** Closes a grant as if it had expired and been granted again; after a clock jumped back, its expiry may be in the future. */
export const closeRole = ({ service }: Test, actor_id: string, role: string) =>
  service.app.db.run(sql`
    update role_grant set closed_at = now() where actor_id = ${actor_id} and role = ${role}`)

/** Inserts a cell grant as a row, also to owners and on deleted cells, where no method allows one. */
export const grantRow = (
  { service }: Test,
  cell_id: string,
  level: 'viewer' | 'editor',
  to: { actor_id: string } | { role: string; scope_id?: string | null },
) => {
  const { actor_id = null, role = null, scope_id = null } = { ...to } as Record<string, string | null>
  return service.app.db.run(sql`
    insert into cell_grant (cell_id, level, actor_id, role, scope_id, cell_created_at, cell_path)
    select id, ${level}, ${actor_id}::uuid, ${role}, ${scope_id}::uuid, created_at, path
    from cell where id = ${cell_id}::uuid`)
}

/** Removes a cell grant from an actor, as a revoke does. */
export const endCellGrant = ({ service }: Test, cell_id: string, actor_id: string) =>
  service.app.db.run(sql`
    delete from cell_grant where cell_id = ${cell_id} and principal = 'a:' || ${actor_id}::uuid`)
