import { words } from '../copy/common.ts'
import { Picker, type Search } from '../ui/picker.tsx'
import { call } from './client.ts'
import { sought } from './find.ts'
import { isAdmin, type Session, signedIn } from './session.ts'

/**
 * Finds an actor by the beginning of its name, or takes an id. Admins search all actors, others those at the scopes of
 * their own roles.
 */
export const ActorPicker = (props: { label: string; value: string; onChange(id: string): void }) => (
  <Picker {...props} find={find} placeholder={howToFind()} none={noneFound()} />
)

/** What to do in the field; without a scope there is nobody to search. */
export const howToFind = (): string =>
  isAdmin.value || ownScopes().length > 0 ? words.find_person : words.paste_actor

const noneFound = (): string =>
  isAdmin.value ? words.no_person : ownScopes().length > 0 ? words.no_person_near : words.no_search

/** The server searches at so many at once. */
const scopesMax = 100
const ownScopes = (): string[] => {
  const own = (signedIn.value as Session).role_grants.flatMap(({ scope_id }) => scope_id ?? [])
  return [...new Set(own)].slice(0, scopesMax)
}

async function find(query: string, signal: AbortSignal): Promise<Search> {
  const where = isAdmin.peek() ? {} : { scope_ids: ownScopes() }
  if (where.scope_ids?.length === 0) return { found: [] }
  return sought(async () => {
    const { actors } = await call('actor_search', { query, limit: 8, ...where }, null, signal)
    return actors.map(({ id, username, display_name }) => ({
      id,
      label: display_name && display_name !== username ? `${display_name} (${username})` : username,
    }))
  })
}
