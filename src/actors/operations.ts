import { z } from 'zod'
import { actorMetadata } from '../accounts/ending.ts'
import { ActorName, foldName } from '../accounts/formats.ts'
import { lockLiveAccount, refuseEnding, takeGuardLock } from '../accounts/locks.ts'
import { activeGrants } from '../auth/caller.ts'
import type { App } from '../core/app.ts'
import { parseInput } from '../core/input.ts'
import { type Operator, operate } from '../core/operate.ts'
import { Uuid } from '../core/wire.ts'
import { type Queryable, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import type { RoleGrantSummary } from '../roles/grants.ts'
import { lockLiveActor } from './lock.ts'

/**
 * The actors of an account by operator commands and library calls, the only ways to have more than one
 * (contract 2, section 13). A missing or deleted account is refused with `account_not_found`; an actor that is
 * not live, or whose account is not, with `actor_not_found`.
 */

/** An actor as operators see it; a removed one stays, with its grants, for ever. */
export type ActorEntry = {
  id: string
  account_id: string
  name: string
  created_at: string
  updated_at: string | null
  deleted_at: string | null
}

const columns = sql`id, account_id, name, created_at, updated_at, deleted_at`

const Target = z.strictObject({ account_id: Uuid })

/** With its active grants, which have no effect once it is removed, and can still be revoked. */
export type ListedActor = ActorEntry & { role_grants: z.output<typeof RoleGrantSummary>[] }

/** Every actor of an account, oldest first, removed ones included; none for an unknown account. */
export async function listActors(app: App, input: z.input<typeof Target>): Promise<ListedActor[]> {
  const { account_id } = parseInput(Target, input)
  return await app.db.rows<ListedActor>(sql`
    select ${columns}, ${activeGrants} as role_grants from actor
    where account_id = ${account_id}::uuid order by created_at, id`)
}

const AddInput = Target.extend({ name: ActorName })

/** One more actor; beyond `max_actors` live ones it is refused with `actor_limit`. */
export async function addActor(
  app: App,
  input: z.input<typeof AddInput>,
  operator: Operator,
): Promise<ActorEntry> {
  const { account_id, name } = parseInput(AddInput, input)
  const most = app.config.max_actors
  return await operate(app, 'actor_create', operator, async ({ db, audit, detail }) => {
    await lockLiveAccount(db, account_id)
    if (most !== null && (await countLive(db, account_id)) >= most) throw refusal('actor_limit')
    const made = (await db.first<ActorEntry>(sql`
      insert into actor (account_id, name, name_key) values (${account_id}::uuid, ${name}, ${foldName(name)})
      returning ${columns}`)) as ActorEntry
    audit('actor_create', actorMetadata(detail), targetOf(made))
    return made
  })
}

const RenameInput = z.strictObject({ actor_id: Uuid, name: ActorName })

/** Another name; nothing else of an actor ever changes. */
export async function renameActor(
  app: App,
  input: z.input<typeof RenameInput>,
  operator: Operator,
): Promise<ActorEntry> {
  const { actor_id, name } = parseInput(RenameInput, input)
  return await operate(app, 'actor_rename', operator, async ({ db, audit, detail }) => {
    await lockLiveActor(db, actor_id)
    const renamed = (await db.first<ActorEntry>(sql`
      update actor set name = ${name}, name_key = ${foldName(name)}, updated_at = now(),
        updated_by = ${operator.actor_id ?? null}::uuid
      where id = ${actor_id}::uuid
      returning ${columns}`)) as ActorEntry
    audit('actor_rename', actorMetadata(detail), targetOf(renamed))
    return renamed
  })
}

const RemoveInput = z.strictObject({ actor_id: Uuid })

/**
 * Tombstones one actor: its grants stay stored without effect, sessions and tokens are the account's and
 * live on. Refuses with `last_actor`, `cannot_delete_keeper`, `cannot_delete_last_admin`.
 */
export async function removeActor(
  app: App,
  input: z.input<typeof RemoveInput>,
  operator: Operator,
): Promise<void> {
  const { actor_id } = parseInput(RemoveInput, input)
  await operate(app, 'actor_delete', operator, async ({ db, audit, detail }) => {
    const account_id = await lockLiveActor(db, actor_id)
    if ((await countLive(db, account_id)) < 2) throw refusal('last_actor')
    await takeGuardLock(db)
    await refuseEnding(db, { actor_id })
    await db.run(sql`
      update actor set deleted_at = now(), deleted_by = ${operator.actor_id ?? null}::uuid
      where id = ${actor_id}::uuid`)
    audit('actor_delete', actorMetadata(detail), targetOf({ id: actor_id, account_id }))
  })
}

async function countLive(db: Queryable, account_id: string): Promise<number> {
  const { live } = await db.one<{ live: number }>(sql`
    select count(*) as live from actor where account_id = ${account_id}::uuid and deleted_at is null`)
  return live
}

const targetOf = ({ id, account_id }: Pick<ActorEntry, 'id' | 'account_id'>) => ({
  target_actor_id: id,
  target_account_id: account_id,
})
