import { type Queryable, sql } from '../../src/db/db.ts'
import type { Held, Model, ModelCell } from './access.ts'

/**
 * Inserts a model as rows, because no method makes system cells, grants to owners or cells that are already deleted.
 */
export async function insertModel(db: Queryable, actorIds: readonly string[], model: Model): Promise<void> {
  const actorId = (n: number | null): string | null => (n === null ? null : (actorIds[n] as string))
  const cells = model.cells.map(({ id, owner, visibility, kind, path, isDeleted, created, updated }) => ({
    id,
    visibility,
    kind,
    path,
    created_by: actorId(owner),
    created_at: moment(created),
    updated_at: updated === null ? null : moment(updated),
    deleted_at: isDeleted ? moment(9) : null,
  }))
  await db.run(sql`
    insert into cell (id, visibility, kind, path, created_by, created_at, updated_at, deleted_at, data, data_bytes)
    select id, visibility, kind, path, created_by, created_at, greatest(created_at, updated_at), deleted_at, '{}', 2
    from jsonb_populate_recordset(null::cell, ${JSON.stringify(cells)}::jsonb)`)
  const grants = model.cells.flatMap((cell) =>
    cell.grants.map(({ id, level, to }) => ({
      id,
      cell_id: cell.id,
      level,
      ...('actor' in to ? { actor_id: actorId(to.actor) } : { role: to.role, scope_id: to.scope }),
    })),
  )
  await db.run(sql`
    insert into cell_grant (id, cell_id, level, actor_id, role, scope_id, cell_created_at, cell_path)
    select g.id, g.cell_id, g.level, g.actor_id, g.role, g.scope_id, c.created_at, c.path
    from jsonb_populate_recordset(null::cell_grant, ${JSON.stringify(grants)}::jsonb) g join cell c on c.id = g.cell_id`)
  const edges = (what: 'fields' | 'items') =>
    JSON.stringify(
      model.cells.flatMap((cell) =>
        [...cell[what]].map(([key, far]) => ({ near: cell.id, key, far: far.id })),
      ),
    )
  await db.run(sql`
    insert into cell_field (source_id, name, target_id)
    select near, key, far from jsonb_to_recordset(${edges('fields')}::jsonb) e (near uuid, key text, far uuid)`)
  await db.run(sql`
    insert into cell_item (parent_id, position, child_id)
    select near, key, far from jsonb_to_recordset(${edges('items')}::jsonb) e (near uuid, key text, far uuid)`)
  for (const one of model.held) await insertHeld(db, actorId(one.actor) as string, one)
}

const moment = (n: number): string => new Date(Date.UTC(2026, 0, 1) + n * 1000).toISOString()

export async function insertHeld(
  db: Queryable,
  actor_id: string,
  { role, scope, lasts }: Held,
): Promise<void> {
  const at = { long: '2999-01-01T00:00:00Z', expired: '2026-01-02T00:00:00Z' }[lasts as string] ?? null
  const ended = '2026-01-03T00:00:00Z'
  await db.run(sql`
    insert into role_grant (actor_id, role, scope_kind, scope_id, created_at, expires_at, revoked_at, closed_at)
    values (${actor_id}::uuid, ${role}, ${scope === null ? null : 'place'}, ${scope}::uuid, '2026-01-01',
      ${lasts === 'closed' ? ended : at}::timestamptz, ${lasts === 'revoked' ? ended : null}::timestamptz,
      ${lasts === 'closed' ? ended : null}::timestamptz)`)
}

/** Ends a role grant of the model, as a revoke does. */
export const endHeld = (db: Queryable, actor_id: string, { role, scope }: Held): Promise<number> =>
  db.run(sql`
    update role_grant set revoked_at = now()
    where actor_id = ${actor_id}::uuid and role = ${role} and scope_id is not distinct from ${scope}::uuid
      and revoked_at is null and closed_at is null`)

/** Leaves a cell to the system, as the purge of its owner does. */
export const orphan = (db: Queryable, { id }: ModelCell): Promise<number> =>
  db.run(sql`update cell set created_by = null where id = ${id}::uuid`)

export type EdgeRow = { near: string; key: string; far: string }

/** The stored edges of all other cells. */
export const edgesOfOthers = async (db: Queryable, known: readonly string[]) => ({
  fields: await db.rows<EdgeRow>(sql`
    select source_id as near, name as key, target_id as far from cell_field where source_id <> all(${known}::uuid[])`),
  items: await db.rows<EdgeRow>(sql`
    select parent_id as near, position as key, child_id as far from cell_item where parent_id <> all(${known}::uuid[])`),
})
