import { z } from 'zod'
import { actorMetadata } from '../accounts/ending.ts'
import { ActorName, foldName } from '../accounts/formats.ts'
import { lockLiveAccount } from '../accounts/locks.ts'
import { account, operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { type ActorEntry, actorColumns, countLive, targetOf } from './actors.ts'

/** Refused once the account has `max_actors` live actors. */
export const addActor = operation({
  doc: 'Add an actor to an account. Its calls must then say which actor is acting (`acting`).',
  input: z.strictObject({ account_id: Uuid, name: ActorName }),
  event: 'actor_create',
  errors: ['account_not_found', 'actor_limit'],
  async handler({ account_id, name }, { app, db, audit, detail, fail }) {
    const max = app.config.max_actors
    await lockLiveAccount(db, account_id, fail)
    if (max !== null && (await countLive(db, account_id)) >= max) throw fail('actor_limit')
    const made = await db.one<ActorEntry>(sql`
      insert into actor (account_id, name, name_key) values (${account_id}::uuid, ${name}, ${foldName(name)})
      returning ${actorColumns}`)
    audit('actor_create', actorMetadata(detail), targetOf(made))
    return made
  },
  command: {
    name: 'actor add',
    args: { account_id: account, name: '--name NAME' },
    phrase: ({ id, name, account_id }) => ({ actor: id, name, account: account_id }),
  },
})
