import { type Sql, sql } from '../db/sql.ts'

/** `role_grant g` was neither revoked nor closed to make room for a new one; it may have expired. */
export const unendedGrant = sql`g.revoked_at is null and g.closed_at is null`

/**
 * `role_grant g` is active by the database clock at the time of the statement. `now()` would be the start of
 * the transaction, which may have waited for a lock while the grant expired.
 */
export const activeGrant = sql`${unendedGrant} and (g.expires_at is null or g.expires_at > statement_timestamp())`

/**
 * Whether an account, given by an expression for its id, holds one of the roles globally through a live actor; with
 * `byAnyActor`, also through a removed one.
 */
export const holdsAnyOf = (
  account_id: Sql,
  roles: readonly string[],
  { byAnyActor = false } = {},
): Sql => sql`exists (
    select from role_grant g join actor on actor.id = g.actor_id
    where actor.account_id = ${account_id} ${byAnyActor ? sql.empty : sql`and actor.deleted_at is null`}
      and g.role = any(${[...roles]}::text[]) and g.scope_id is null and ${activeGrant})`

const grantKeys = 'id actor_id role scope_kind scope_id created_at expires_at granted_by'.split(' ')
const grantPairs = grantKeys.map(
  (key) => `'${key}', ${key.endsWith('_at') ? `iso_timestamp(g.${key})` : `g.${key}`}`,
)

/** `role_grant g` as JSON; `iso_timestamp` puts times into their wire form. */
export const grantSummary = sql.raw(`json_build_object(${grantPairs.join(', ')})`)

const activeGrantsUpTo = (limit: Sql): Sql => sql`coalesce((
    select json_agg(${grantSummary} order by g.created_at, g.id)
    from (
      select ${sql.raw(grantKeys.join(', '))} from role_grant g where g.actor_id = actor.id and ${activeGrant} ${limit}
    ) g
  ), '[]'::json)`

/** The active grants of `actor` as JSON, oldest first. */
export const activeGrants = activeGrantsUpTo(sql.empty)

/** So many of them at most; if there are more, any. */
export const someActiveGrants = (most: number): Sql => activeGrantsUpTo(sql`limit ${sql.raw(most)}`)

/** The current keeper account: the lowest id of those with an active global keeper grant on a live actor. */
export const keeperAccountId = sql`(
    select owner.id
    from role_grant g join actor on actor.id = g.actor_id join account owner on owner.id = actor.account_id
    where g.role = 'keeper' and g.scope_id is null and ${activeGrant}
      and actor.deleted_at is null and owner.deleted_at is null
    order by owner.id limit 1)`
