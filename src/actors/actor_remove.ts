import { z } from 'zod'
import { actorMetadata } from '../accounts/ending.ts'
import { refuseEnding, takeGuardLock } from '../accounts/locks.ts'
import { operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { countLive, targetOf } from './entry.ts'
import { lockLiveActor } from './lock.ts'

/** Its grants stay stored without effect; sessions and tokens are the account's and live on. */
export const removeActor = operation({
  doc: 'Remove an actor for good; its roles have no effect from then on. Not the last one, nor the keeper.',
  input: z.strictObject({ actor_id: Uuid }),
  event: 'actor_delete',
  errors: ['actor_not_found', 'last_actor', 'cannot_delete_keeper', 'cannot_delete_last_admin'],
  async handler({ actor_id }, { db, audit, detail, by, fail }): Promise<void> {
    const account_id = await lockLiveActor(db, actor_id, fail)
    if ((await countLive(db, account_id)) < 2) throw fail('last_actor')
    await takeGuardLock(db)
    await refuseEnding(db, { actor_id }, fail)
    await db.run(sql`
      update actor set deleted_at = now(), deleted_by = ${by}::uuid where id = ${actor_id}::uuid`)
    audit('actor_delete', actorMetadata(detail), targetOf({ id: actor_id, account_id }))
  },
  command: {
    name: 'actor remove',
    args: { actor_id: 'ACTOR' },
    confirm: 'An actor that is removed cannot be brought back.',
    done: { removed: true },
    phrase: (_, { actor_id }) => `The actor ${actor_id} is removed.`,
  },
})
