import { liveActors } from '../actors/actors.ts'
import { activeGrants } from '../auth/caller.ts'
import type { App } from '../core/app.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import type { Grantor, OfferQuestion } from '../registry/hooks.ts'
import type { Scope } from '../roles/scope.ts'

/**
 * Whether the grantor may offer the role. The consumer's callback decides, or by default the grantor's own grants.
 * The caller holds the account lock of the grantor.
 */
export async function mayOffer(app: App, question: OfferQuestion): Promise<boolean> {
  const { authorizeOffer } = app
  if (!authorizeOffer) return holds(question.grantor, question.role, question)
  try {
    return (await authorizeOffer(structuredClone(question))) === true
  } catch (cause) {
    // Nothing that the callback throws reaches the client, not even a refusal.
    throw new Error('The callback authorize_offer failed.', { cause })
  }
}

/** A global grant counts at every scope, a scoped one only at its own. */
const holds = ({ role_grants }: Grantor, role: string, { scope_kind, scope_id }: Scope): boolean =>
  role_grants.some(
    (grant) =>
      grant.role === role &&
      (grant.scope_id === null || (grant.scope_kind === scope_kind && grant.scope_id === scope_id)),
  )

/** The live ones of these actors, with their active grants, as one JSON value. Read it after locking their accounts. */
export const liveAmong = (ids: readonly string[]): Sql => sql`coalesce((
    select json_agg(json_build_object('actor_id', actor.id, 'account_id', actor.account_id, 'role_grants', ${activeGrants}))
    from ${liveActors} where actor.id = any(${[...ids]}::uuid[])
  ), '[]'::json)`

export async function readLiveActors(db: Queryable, ids: readonly string[]): Promise<Map<string, Grantor>> {
  return byActor((await db.one<{ live: Grantor[] }>(sql`select ${liveAmong(ids)} as live`)).live)
}

export const byActor = (live: readonly Grantor[]): Map<string, Grantor> =>
  new Map(live.map((one) => [one.actor_id, one]))
