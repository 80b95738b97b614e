import { sql } from '../db/sql.ts'

/** `role_grant g` was neither revoked nor closed to make room for a new one; it may have expired. */
export const unendedGrant = sql`g.revoked_at is null and g.closed_at is null`

/**
 * `role_grant g` is active by the database clock at the time of the statement. `now()` would be the start of
 * the transaction, which may have waited for a lock while the grant expired.
 */
export const activeGrant = sql`${unendedGrant} and (g.expires_at is null or g.expires_at > statement_timestamp())`
