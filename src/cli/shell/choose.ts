import type { AccountEntry } from '../../accounts/admin/view.ts'
import type { ListedActor } from '../../actors/actor_list.ts'
import type { App } from '../../core/app.ts'
import type { From, Said } from '../../core/operation.ts'
import { refusal } from '../../errors.ts'
import { operations } from '../../operations.ts'
import type { CommandIo } from './output.ts'
import { askPassword } from './password.ts'

/** What the arguments of one call refer to, so that each is looked up once. */
export type Choice = Said & { io: CommandIo; holder?: ListedActor }

/** Turns the arguments of a command into the ids that its operation takes. */
export const chosen = (from: From, app: App, said: Choice): Promise<string> => choices[from](app, said)

const choices: Record<From, (app: App, said: Choice) => Promise<string>> = {
  account: async (app, said) => (await accountOf(app, said)).account.id,
  actor: async (app, said) => {
    const entry = await accountOf(app, said)
    if (entry.account.deleted_at !== null) throw refusal('account_not_found')
    return actorOf(entry, said)
  },
  holder: async (app, said) => {
    const entry = await accountOf(app, said)
    const named = said.words['--actor']
    const id = typeof named === 'string' ? named.toLowerCase() : actorOf(entry, said)
    const actors = await operations.listActors(app, { account_id: entry.account.id })
    said.holder = actors.find((one) => one.id === id)
    if (!said.holder) throw refusal('actor_not_found')
    return said.holder.id
  },
  grant: async (_app, { words, holder }) => {
    const { ROLE: role, '--scope-kind': kind = null, '--scope-id': id = null } = words
    const scope_id = typeof id === 'string' ? id.toLowerCase() : null
    const found = holder?.role_grants.find(
      (one) => one.role === role && one.scope_kind === kind && one.scope_id === scope_id,
    )
    if (!found) throw refusal('role_grant_not_found')
    return found.id
  },
  password: (_app, { io, who, words }) => askPassword(io, who || String(words['--username'])),
}

async function accountOf(app: App, said: Choice): Promise<AccountEntry> {
  const entry = await operations.findAccount(app, { ref: String(said.words.REF) })
  said.who = entry.account.username
  return entry
}

/** The named actor, otherwise the only one. For a deleted account: among those deleted with it. */
function actorOf({ actors }: AccountEntry, { words }: Choice): string {
  const named = words['--actor']
  if (named === undefined && actors.length > 1)
    throw refusal('actor_required', { available: actors.map(({ id, name }) => ({ id, name })) })
  const found = named === undefined ? actors[0] : actors.find(({ id }) => id === String(named).toLowerCase())
  if (!found) throw refusal('actor_not_found')
  return found.id
}
