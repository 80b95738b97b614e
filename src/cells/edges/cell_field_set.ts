import { z } from 'zod'
import { mutation } from '../../core/action.ts'
import { type Queryable, sql } from '../../db/db.ts'
import { Uuid } from '../../wire/types.ts'
import { me } from '../access.ts'
import { edgeColumns, Field, FieldName, fieldEdges, linkable } from './edges.ts'
import { isNearlyFull, makeRoom } from './room.ts'
import { edgeWriteError } from './write.ts'

export const cell_field_set = mutation({
  doc: 'Point a named field of a cell to a cell that the caller may view. If it already leads there, nothing is written.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_field_set',
  rate_limit: 'account',
  rate_limit_group: 'cell_write',
  input: z.strictObject({ source_id: Uuid, name: FieldName, target_id: Uuid }),
  output: z.object({ field: Field }),
  errors: ['cell_not_found', 'cell_edges_full'],
  async handler(link, { app, actor, db, audit, fail }) {
    app.disk.admit()
    const max = app.config.max_cell_edges
    const locked = await lockSource(db, actor.id, link, max)
    if (!locked) throw fail('cell_not_found')
    if (locked.field) return { field: locked.field }
    if (locked.is_nearly_full && max !== null)
      await makeRoom(db, fieldEdges, { anchor_id: link.source_id, key: link.name, max })
    const field = await write(db, actor.id, link).catch((error) => {
      throw edgeWriteError(error)
    })
    if (field) {
      audit('cell_field_set', link)
      return { field }
    }
    // The caller lost a right, or another call set the same target: respond as the lock would now.
    const now = await lockSource(db, actor.id, link, max)
    if (!now?.field) throw fail('cell_not_found')
    return { field: now.field }
  },
})

type Link = { source_id: string; name: string; target_id: string }
type Locked = { is_nearly_full: boolean; field: Field | null }

/** Locks the source if the caller may set the field; `field` is the stored one if it already leads to this target. */
async function lockSource(
  db: Queryable,
  actor_id: string,
  { source_id, name, target_id }: Link,
  max: number | null,
): Promise<Locked | undefined> {
  const row = await db.first<{ is_nearly_full: boolean } & (Field | { [K in keyof Field]: null })>(sql`
    with ${me(actor_id)}
    select ${edgeColumns(fieldEdges, 'f')}, ${isNearlyFull(fieldEdges, max)} as is_nearly_full
    from cell c left join cell_field f
      on f.source_id = c.id and f.name = ${name} and f.target_id = ${target_id}::uuid, cell far, me
    where ${linkable(source_id, target_id)} for share of c`)
  if (!row) return undefined
  const { is_nearly_full, ...field } = row
  return { is_nearly_full, field: field.source_id === null ? null : field }
}

const write = (db: Queryable, actor_id: string, { source_id, name, target_id }: Link) =>
  db.first<Field>(sql`
    with ${me(actor_id)}
    insert into cell_field as f (source_id, name, target_id)
    select c.id, ${name}, far.id from cell c, cell far, me where ${linkable(source_id, target_id)}
    on conflict (source_id, name) do update set target_id = excluded.target_id, created_at = excluded.created_at
      where f.target_id <> excluded.target_id
    returning ${edgeColumns(fieldEdges, 'f')}`)
