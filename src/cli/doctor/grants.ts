import { activeGrant, unendedGrant } from '../../auth/active-grant.ts'
import { type Database, sql } from '../../db/db.ts'
import { builtinRoles } from '../../roles/scope.ts'
import type { Opened } from '../with-service.ts'
import type { Finding } from './finding.ts'

/** A role that is not declared opens no method, but cells that are shared with it stay open to its holders. */
export async function grantFindings(db: Database, { parsed }: Opened): Promise<Finding[]> {
  const declared = [...builtinRoles, ...(parsed.declarations.roles ?? []).map(({ name }) => name)]
  const next = sql`select g.role from role_grant g where ${unendedGrant} and g.role <> ''`
  // From one role to the next by the index, because there may be millions of grants.
  const held = await db.rows<{ role: string }>(sql`
    with recursive held as (
      (${next} order by g.role limit 1)
      union all
      select (${next} and g.role > held.role order by g.role limit 1) from held where held.role is not null
    )
    select role from held cross join lateral (
      -- As an equality, the planner would look for the role in the whole table, or join every grant with its actor.
      select from role_grant g
        cross join lateral (select from actor where id = g.actor_id and deleted_at is null offset 0) actor
      where g.role between held.role and held.role and g.role <> '' and ${activeGrant} order by g.role limit 1
    ) one where role <> all(${declared}::text[])`)
  if (held.length === 0) return []
  return [
    {
      finding: 'orphaned_grants',
      what: `Actors hold roles that the config file does not declare: ${held.map(({ role }) => role).join(', ')}.`,
      remedy:
        'Cells that are shared with such a role stay open to them. A role that your application declares in code, which no command reads, is none of these. Declare any other in the config file again, or take it from its holders: `cellkeep role revoke`.',
    },
  ]
}
