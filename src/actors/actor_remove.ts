import { z } from 'zod'
import { actorMetadata } from '../accounts/ending.ts'
import { brokenGuard, lockLiveActor, takeGuardLock } from '../accounts/locks.ts'
import { operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { countLive, targetOf } from './actors.ts'

/** Its grants stay stored without effect. Sessions and tokens belong to the account and stay valid. */
export const removeActor = operation({
  doc: 'Remove an actor for good; its roles stop having effect. Refused for the last actor, the last admin and the keeper.',
  input: z.strictObject({ actor_id: Uuid }),
  event: 'actor_delete',
  errors: ['actor_not_found', 'last_actor', 'cannot_delete_keeper', 'cannot_delete_last_admin'],
  async handler({ actor_id }, { db, audit, detail, by, fail }): Promise<void> {
    const account_id = await lockLiveActor(db, actor_id, fail)
    if ((await countLive(db, account_id)) < 2) throw fail('last_actor')
    await takeGuardLock(db)
    const reason = await brokenGuard(db, { actor_id })
    if (reason) throw fail(reason)
    await db.run(sql`
      update actor set deleted_at = now(), deleted_by = ${by}::uuid where id = ${actor_id}::uuid`)
    audit('actor_delete', actorMetadata(detail), targetOf({ id: actor_id, account_id }))
  },
  command: {
    name: 'actor remove',
    args: { actor_id: 'ACTOR' },
    confirm: 'A removed actor cannot be restored.',
    done: { removed: true },
    phrase: (_, { actor_id }) => `The actor ${actor_id} is removed.`,
  },
})
