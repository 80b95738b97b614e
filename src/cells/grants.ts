import { z } from 'zod'
import type { Audit } from '../audit/audit.ts'
import { Uuid } from '../core/wire.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'

/** Wire form of a cell grant (contract 4, section 3.1). */
export const CellGrant = z.object({
  id: Uuid,
  cell_id: Uuid,
  level: z.enum(['viewer', 'editor']),
  actor_id: Uuid.nullable(),
  role: z.string().nullable(),
  scope_id: Uuid.nullable(),
  granted_by: Uuid.nullable(),
  created_at: z.string(),
})
export type CellGrant = z.output<typeof CellGrant>

/** A grant under this alias as JSON, with timestamps in wire form. */
export const grantJson = (alias: string): Sql => {
  const keys = Object.keys(CellGrant.shape).filter((key) => key !== 'created_at')
  const pairs = keys.map((key) => `'${key}', ${alias}.${key}`).join(', ')
  return sql.raw(`json_build_object(${pairs}, 'created_at', iso_timestamp(${alias}.created_at))`)
}

export type Principal = { actor_id: string } | { role: string; scope_id: string | null }

/**
 * Gives a principal a level on a cell: one row per principal, whose level is replaced on repeat; an equal
 * level writes nothing (contract 4, section 8). The caller holds the cell's lock and its manage tier.
 */
export async function upsertCellGrant(
  db: Queryable,
  audit: Audit,
  grant: { cell_id: string; level: 'viewer' | 'editor'; principal: Principal; granted_by: string | null },
  detail: { via?: string } = {},
): Promise<CellGrant> {
  const { cell_id, level, principal, granted_by } = grant
  const isActor = 'actor_id' in principal
  const [actor_id, role, scope_id] = isActor
    ? [principal.actor_id, null, null]
    : [null, principal.role, principal.scope_id]
  const columns = sql.raw(
    Object.keys(CellGrant.shape)
      .map((key) => `g.${key}`)
      .join(', '),
  )
  const written = await db.first<CellGrant>(sql`
    insert into cell_grant as g (cell_id, level, actor_id, role, scope_id, cell_created_at, granted_by)
    select c.id, ${level}, ${actor_id}::uuid, ${role}, ${scope_id}::uuid, c.created_at, ${granted_by}::uuid
    from cell c where c.id = ${cell_id}::uuid and c.deleted_at is null
    on conflict (cell_id, principal) do update set level = excluded.level, granted_by = excluded.granted_by
      where g.level <> excluded.level
    returning ${columns}`)
  if (written) {
    const target = isActor ? await targetOf(db, principal.actor_id) : {}
    audit('cell_grant_create', { cell_id, grant_id: written.id, principal, ...detail }, target)
    return written
  }
  const stored = await db.first<CellGrant>(sql`
    select ${columns} from cell_grant g where g.cell_id = ${cell_id}::uuid
      and g.actor_id is not distinct from ${actor_id}::uuid and g.role is not distinct from ${role}
      and g.scope_id is not distinct from ${scope_id}::uuid`)
  return stored as CellGrant
}

async function targetOf(db: Queryable, actor_id: string) {
  const row = await db.first<{ account_id: string }>(
    sql`select account_id from actor where id = ${actor_id}::uuid`,
  )
  return row ? { target_actor_id: actor_id, target_account_id: row.account_id } : {}
}
