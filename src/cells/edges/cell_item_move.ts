import { z } from 'zod'
import type { Audit } from '../../audit/audit.ts'
import { mutation } from '../../core/declare.ts'
import { sql } from '../../db/db.ts'
import { brokenConstraint } from '../../db/servers/failure.ts'
import { Uuid } from '../../wire/types.ts'
import { isUntouched, me, tier, tiers } from '../access.ts'
import { edgeColumns, Item, itemEdges, Position } from './edges.ts'
import { placeItem, placing } from './write.ts'

export const cell_item_move = mutation({
  doc: 'Move an item to a free position in the same cell.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_item_move',
  rate_limit: 'account',
  rate_limit_group: 'cell_write',
  input: z.strictObject({ parent_id: Uuid, position: Position, new_position: Position }),
  output: z.object({ item: Item }),
  errors: ['cell_not_found', 'cell_item_position_taken'],
  async handler({ parent_id, position, new_position }, { actor, db, single, audit, fail }) {
    const movable = sql`
      select ${edgeColumns(itemEdges, 'i')} from cell c, cell_item i, cell far, me
      where c.id = ${parent_id}::uuid and ${tier.edit} and i.parent_id = c.id and i.position = ${position}
        and far.id = i.child_id and ${tiers('far').view}`
    const record = (write: Audit, child_id: string) =>
      write('cell_item_move', { parent_id, child_id, position_old: position, position_new: new_position })
    const moved = await single<Item>(
      sql`${me(actor.id)}, free as (
        ${movable} and ${isUntouched} and not exists (
          select from cell_item held where held.parent_id = c.id and held.position = ${new_position})
        for no key update of c skip locked
      ), moved as (
        update cell_item i set position = ${new_position} from free
        where i.parent_id = free.parent_id and i.position = free.position and i.child_id = free.child_id
        returning ${edgeColumns(itemEdges, 'i')}
      )`,
      'moved',
      (write, found) => record(write, found('child_id')),
    ).catch((error) => {
      throw brokenConstraint(error) === 'cell_item_pkey' ? fail('cell_item_position_taken') : error
    })
    if (moved) return { item: moved }

    // Locks out other writers of this parent's items: two moves that swap positions would deadlock.
    const stored = await db.first<Item>(sql`with ${me(actor.id)} ${movable} for no key update of c`)
    if (!stored) throw fail('cell_not_found')
    if (new_position === position) return { item: stored }
    const item = await placeItem(
      db,
      sql`${me(actor.id)}, movable as (${movable}), item as (
        select parent_id, ${new_position} as position, child_id, created_at from movable
      ), ${placing}, removed as (
        delete from cell_item old using added where old.parent_id = added.parent_id and old.position = ${position}
      )`,
    )
    record(audit, item.child_id)
    return { item }
  },
})
