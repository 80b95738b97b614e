import { z } from 'zod'
import type { Audit } from '../../audit/audit.ts'
import { mutation } from '../../core/declare.ts'
import { type Queryable, sql } from '../../db/db.ts'
import { Uuid } from '../../wire/types.ts'
import { edgeColumns, Field, FieldName, fieldEdges } from './edges.ts'
import { isNearlyFull, makeRoom } from './room.ts'
import { addAtOnce, endsOf, type Link, lockAnchor, refusePurged } from './write.ts'

export const cell_field_set = mutation({
  doc: 'Point a named field of a cell to a cell that the caller may view. If it already leads there, nothing is written.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_field_set',
  rate_limit: 'account',
  rate_limit_group: 'cell_write',
  input: z.strictObject({ source_id: Uuid, name: FieldName, target_id: Uuid }),
  output: z.object({ field: Field }),
  errors: ['cell_not_found', 'cell_edges_full'],
  async handler(input, { app, actor, db, single, audit, fail }) {
    app.disk.admit()
    const max = app.config.max_cell_edges
    const { source_id, name, target_id } = input
    const link = { actor_id: actor.id, anchor_id: source_id, far_id: target_id, key: name, max }
    const record = (write: Audit) => write('cell_field_set', input)
    const set = await setAtOnce(single, link, record)
    if (set) return { field: set }

    const locked = await lockSource(db, link)
    if (!locked) throw fail('cell_not_found')
    if (locked.field) return { field: locked.field }
    if (locked.is_nearly_full) await makeRoom(db, fieldEdges, link)
    const field = await db
      .first<Field>(sql`with ${endsOf(link)}, ${setting} select * from added`)
      .catch(refusePurged)
    if (field) {
      record(audit)
      return { field }
    }
    // The caller lost a right, or another call set the same target: respond as the lock would now.
    const now = await lockSource(db, link)
    if (!now?.field) throw fail('cell_not_found')
    return { field: now.field }
  },
})

/** Sets fields, except those that already lead to their target. */
const setting = sql`added as (
  insert into cell_field as f (source_id, name, target_id) select anchor_id, key, far_id from ends
  on conflict (source_id, name) do update set target_id = excluded.target_id, created_at = excluded.created_at
    where f.target_id <> excluded.target_id
  returning ${edgeColumns(fieldEdges, 'f')}
)`

const setAtOnce = addAtOnce<Field>(fieldEdges, setting)

type Locked = { is_nearly_full: boolean; field: Field | null }

/** Locks the source if the caller may set the field; `field` is the stored one if it already leads to this target. */
async function lockSource(db: Queryable, link: Link): Promise<Locked | undefined> {
  const row = await lockAnchor<{ is_nearly_full: boolean } & (Field | { [K in keyof Field]: null })>(
    db,
    link,
    sql`${edgeColumns(fieldEdges, 'f')}, ${isNearlyFull(fieldEdges, link.max)} as is_nearly_full`,
    sql`left join cell_field f on f.source_id = c.id and f.name = ${link.key} and f.target_id = ${link.far_id}::uuid`,
  )
  if (!row) return undefined
  const { is_nearly_full, ...field } = row
  return { is_nearly_full, field: field.source_id === null ? null : field }
}
