import { z } from 'zod'
import { actorMetadata } from '../accounts/ending.ts'
import { ActorName, foldName } from '../accounts/formats.ts'
import { holdCredential, lockLiveActor } from '../accounts/locks.ts'
import { mutation } from '../core/declare.ts'
import { operation } from '../core/operation.ts'
import { type Sql, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { Uuid } from '../wire/types.ts'
import { type ActorEntry, actorColumns, targetOf } from './actors.ts'

export const actor_rename = mutation({
  doc: 'Change the name of the acting actor, which others see; it need not be unique. `changed` is false if the actor already has this name.',
  auth: { account: 'required', actor: 'required' },
  event: 'actor_rename',
  rate_limit: 'account',
  rate_limit_group: 'account',
  enabled: ({ actor_rename }) => actor_rename,
  input: z.strictObject({ name: ActorName }),
  output: z.object({ ok: z.literal(true), changed: z.boolean() }),
  errors: ['account_vanished'],
  async handler({ name }, { account, actor, credential, db, audit, fail }) {
    const [account_id, isHeld] = await Promise.all([
      lockLiveActor(db, actor.id, () => fail('account_vanished')),
      holdCredential(db, { account, credential }),
    ])
    if (!isHeld) throw refusal('authentication_required')
    const changed = await db.run(sql`${setName(actor.id, name, actor.id)}`)
    if (changed > 0) audit('actor_rename', null, targetOf({ id: actor.id, account_id }))
    return { ok: true as const, changed: changed > 0 }
  },
})

/** The name is the only part of an actor that can change. An equal name changes nothing. */
const setName = (id: string, name: string, by: string | null): Sql => sql`
  update actor set name = ${name}, name_key = ${foldName(name)}, updated_at = now(), updated_by = ${by}::uuid
  where id = ${id}::uuid and name <> ${name}`

export const renameActor = operation({
  doc: 'Give an actor another name.',
  input: z.strictObject({ actor_id: Uuid, name: ActorName }),
  event: 'actor_rename',
  errors: ['actor_not_found'],
  async handler({ actor_id, name }, { db, audit, detail, by, fail }) {
    await lockLiveActor(db, actor_id, fail)
    const renamed = await db.first<ActorEntry>(sql`${setName(actor_id, name, by)} returning ${actorColumns}`)
    if (renamed) audit('actor_rename', actorMetadata(detail), targetOf(renamed))
    return renamed ?? db.one<ActorEntry>(sql`select ${actorColumns} from actor where id = ${actor_id}::uuid`)
  },
  command: {
    name: 'actor rename',
    args: { actor_id: 'ACTOR', name: '--name NAME' },
    phrase: ({ id, name }) => ({ actor: id, name }),
  },
})
