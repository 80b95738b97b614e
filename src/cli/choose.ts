import type { AccountEntry } from '../accounts/admin_account_list.ts'
import type { ListedActor } from '../actors/operations.ts'
import { refusal } from '../errors.ts'
import type { CommandService } from './with-service.ts'

/** The account that an argument names: by id, username or e-mail. */
export const accountOf = ({ operations }: CommandService, ref: string | undefined): Promise<AccountEntry> =>
  operations.findAccount({ ref: ref ?? '' })

/** The id of the account that an argument names; null without one. */
export const accountIdOf = async (
  service: CommandService,
  ref: string | undefined,
): Promise<string | null> => (ref === undefined ? null : (await accountOf(service, ref)).account.id)

/** The live actor that a command means. A deleted account is refused with `account_not_found`. */
export function liveActorOf(entry: AccountEntry, named: string | undefined): string {
  if (entry.account.deleted_at !== null) throw refusal('account_not_found')
  return actorOf(entry, named)
}

/**
 * The actor named by id, else the only one; of a deleted account, among those deleted with it. Refuses with
 * `actor_not_found`, or with `actor_required`, which lists the choice.
 */
export function actorOf({ actors }: AccountEntry, named: string | undefined): string {
  if (named === undefined && actors.length > 1)
    throw refusal('actor_required', { available: actors.map(({ id, name }) => ({ id, name })) })
  const chosen = named === undefined ? actors[0] : actors.find(({ id }) => id === named.toLowerCase())
  if (!chosen) throw refusal('actor_not_found')
  return chosen.id
}

/**
 * The actor whose grant is meant, with its grants: the one named, also a removed one, else the only live one.
 * Refuses as `actorOf`.
 */
export async function holderOf(
  { operations }: CommandService,
  entry: AccountEntry,
  named: string | undefined,
): Promise<ListedActor> {
  const id = named?.toLowerCase() ?? actorOf(entry, undefined)
  const actors = await operations.listActors({ account_id: entry.account.id })
  const holder = actors.find((actor) => actor.id === id)
  if (!holder) throw refusal('actor_not_found')
  return holder
}
