import { sql } from '../db/sql.ts'

/** `role_grant g` was neither revoked nor has it made room for another one; it may have expired. */
export const unendedGrant = sql`g.revoked_at is null and g.closed_at is null`

/**
 * `role_grant g` counts, by the clock of the database, at the time of the statement: `now()` would be that of the
 * transaction, which may have waited for a lock while the grant expired.
 */
export const activeGrant = sql`${unendedGrant} and (g.expires_at is null or g.expires_at > statement_timestamp())`
