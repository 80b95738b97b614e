import { z } from 'zod'
import { actorMetadata } from '../accounts/ending.ts'
import { ActorName, foldName } from '../accounts/formats.ts'
import { lockLiveActor } from '../accounts/locks.ts'
import { operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { type ActorEntry, actorColumns, targetOf } from './actors.ts'

/** The name is the only part of an actor that can change. */
export const renameActor = operation({
  doc: 'Give an actor another name.',
  input: z.strictObject({ actor_id: Uuid, name: ActorName }),
  event: 'actor_rename',
  errors: ['actor_not_found'],
  async handler({ actor_id, name }, { db, audit, detail, by, fail }) {
    await lockLiveActor(db, actor_id, fail)
    const renamed = await db.one<ActorEntry>(sql`
      update actor set name = ${name}, name_key = ${foldName(name)}, updated_at = now(), updated_by = ${by}::uuid
      where id = ${actor_id}::uuid
      returning ${actorColumns}`)
    audit('actor_rename', actorMetadata(detail), targetOf(renamed))
    return renamed
  },
  command: {
    name: 'actor rename',
    args: { actor_id: 'ACTOR', name: '--name NAME' },
    phrase: ({ id, name }) => ({ actor: id, name }),
  },
})
