import { z } from 'zod'
import { mutation } from '../core/action.ts'
import { Uuid } from '../core/wire.ts'
import { type Queryable, sql } from '../db/db.ts'
import { me } from './access.ts'
import { edgeWriteError } from './edge-write.ts'
import { edgeColumns, Field, FieldName, fieldEdges, linkable } from './edges.ts'

export const cell_field_set = mutation({
  doc: 'Let a named field of a cell lead to a cell that the caller may view. The same target writes nothing.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_field_set',
  input: z.strictObject({ source_id: Uuid, name: FieldName, target_id: Uuid }),
  output: z.object({ field: Field }),
  errors: ['cell_not_found'],
  async handler(link, { actor, db, audit, fail }) {
    const stored = await lockSource(db, actor.id, link)
    if (!stored) throw fail('cell_not_found')
    if (stored.source_id !== null) return { field: stored }
    const field = await write(db, actor.id, link).catch((error) => {
      throw edgeWriteError(error)
    })
    if (field) {
      audit('cell_field_set', link)
      return { field }
    }
    // A right went away, or another call set the same target: answer as the lock would answer now.
    const now = await lockSource(db, actor.id, link)
    if (!now || now.source_id === null) throw fail('cell_not_found')
    return { field: now }
  },
})

type Link = { source_id: string; name: string; target_id: string }

/** Locks the source where the caller may set the field; the field as stored if it leads to this target already. */
const lockSource = (db: Queryable, actor_id: string, { source_id, name, target_id }: Link) =>
  db.first<Field | { [K in keyof Field]: null }>(sql`
    with ${me(actor_id)}
    select ${edgeColumns(fieldEdges, 'f')}
    from cell c left join cell_field f
      on f.source_id = c.id and f.name = ${name} and f.target_id = ${target_id}::uuid, cell far, me
    where ${linkable(source_id, target_id)} for share of c`)

const write = (db: Queryable, actor_id: string, { source_id, name, target_id }: Link) =>
  db.first<Field>(sql`
    with ${me(actor_id)}
    insert into cell_field as f (source_id, name, target_id)
    select c.id, ${name}, far.id from cell c, cell far, me where ${linkable(source_id, target_id)}
    on conflict (source_id, name) do update set target_id = excluded.target_id, created_at = excluded.created_at
      where f.target_id <> excluded.target_id
    returning ${edgeColumns(fieldEdges, 'f')}`)
