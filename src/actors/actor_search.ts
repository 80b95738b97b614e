import { z } from 'zod'
import { foldName } from '../accounts/formats.ts'
import { activeGrant } from '../auth/active-grant.ts'
import { query } from '../core/declare.ts'
import { keyset } from '../core/page.ts'
import { type Sql, sql } from '../db/db.ts'
import { hasPrefix } from '../db/prefix.ts'
import { Int, Trimmed, Uuid } from '../wire/types.ts'
import { ActorLabel, type LabelRow, labelColumns, liveActors, toLabel } from './actors.ts'

const ACTOR_SEARCH_LIMIT_MAX = 50
const limitDefault = 20
const queryMax = 50
const scopesMax = 100

/** 1 to 50 code points after trimming. */
const Query = Trimmed(queryMax)

export const actor_search = query({
  doc: 'Actors whose name begins with the text, ignoring case: with a grant at one of the scopes, or any actor as admin.',
  auth: { account: 'required', actor: 'none' },
  replica: true,
  rate_limit: 'account',
  rate_limit_group: 'lookup',
  input: z.strictObject({
    query: Query,
    scope_ids: z.array(Uuid).max(scopesMax).optional(),
    limit: Int(1, ACTOR_SEARCH_LIMIT_MAX).nullish(),
  }),
  output: z.object({ actors: z.array(ActorLabel) }),
  errors: ['actor_search_scope_required'],
  async handler({ query, scope_ids = [], limit }, { account, db, fail }) {
    const size = limit ?? limitDefault
    const order = { 'actor.name_key': 'text', 'actor.id': 'uuid' } as const
    const { inOrder, limited } = keyset({ limit: size, after: null }, order)
    const scopes = [...new Set(scope_ids)]
    const named = hasPrefix(sql`actor.name_key`, foldName(query))
    if (scopes.length > 0) {
      const rows = await db.rows<LabelRow>(sql`
        with ${holders(scopes)}
        select * from (
          (select one.* from (select distinct actor_id from held where not (select is_many from counted)) h
            cross join lateral (
              select ${labelColumns}, actor.name_key from ${liveActors}
              where actor.id = h.actor_id and ${named} offset 0
            ) one
            order by one.name_key, one.id ${limited})
          union all
          (select ${labelColumns}, actor.name_key from ${liveActors}
            where (select is_many from counted) and ${named} and ${inScopes(scopes)} ${inOrder} ${limited})
        ) found order by name_key, id`)
      return { actors: rows.slice(0, size).map(toLabel) }
    }
    // One statement checks the right and searches, so that a right that has just ended is of no use.
    const rows = await db.rows<LabelRow & { is_admin: boolean }>(sql`
      with caller as materialized (select ${isAdmin(account.id)} as is_admin)
      select caller.is_admin, found.* from caller left join (
        select ${labelColumns}, actor.name_key from ${liveActors}
        where ${named} and (select is_admin from caller) ${inOrder} ${limited}
      ) found on true
      order by found.name_key, found.id`)
    if (!rows[0]?.is_admin) throw fail('actor_search_scope_required')
    return {
      actors: rows
        .slice(0, size)
        .filter(({ id }) => id !== null)
        .map(toLabel),
    }
  },
})

/** Max grants at the scopes that are read instead of names. */
const heldMax = 2000

/**
 * `held` are grants at the scopes; `counted` tells whether there are more. If there are few, a walk through the names
 * might find nobody and read them all.
 */
const holders = (scopes: readonly string[]): Sql => sql`held as materialized (
  select g.actor_id from unnest(${scopes}::uuid[]) as at (scope_id) cross join lateral (
    select g.actor_id from role_grant g where g.scope_id = at.scope_id and ${activeGrant}
    limit ${sql.raw(heldMax + 1)}
  ) g limit ${sql.raw(heldMax + 1)}
), counted as materialized (select count(*) > ${sql.raw(heldMax)} as is_many from held)`

const inScopes = (scopes: readonly string[]): Sql => sql`exists (
  select from role_grant g
  where g.actor_id = actor.id and g.scope_id = any(${scopes}::uuid[]) and ${activeGrant})`

/** Whether a live actor of the account holds a global admin grant. */
const isAdmin = (account_id: string): Sql => sql`exists (
  select from ${liveActors} join role_grant g on g.actor_id = actor.id
  where account.id = ${account_id}::uuid and g.role = 'admin' and g.scope_id is null and ${activeGrant})`
