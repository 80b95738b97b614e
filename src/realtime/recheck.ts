import { activeGrant, holdsAnyOf, keeperAccountId } from '../auth/active-grant.ts'
import { type Database, sql } from '../db/db.ts'
import { type Connection, hasExpired, type Lost } from './connection.ts'

export type RecheckDeps = {
  db: Database
  /** Whether a daemon token is still valid. */
  holdsDaemon(token: string): Promise<boolean>
  /** Roles whose holders need a strong credential. */
  strongRoles: readonly string[]
}

/** The connections that lost their right, with the reason to give. */
export async function* allLost(
  which: Iterable<Connection>,
  { db, holdsDaemon, strongRoles }: RecheckDeps,
): AsyncGenerator<[Connection, Lost]> {
  // The cleanup may already have removed the expired row.
  for (const [connection, reason] of await findLost(db, which, strongRoles))
    yield [
      connection,
      reason === 'revoked' && hasExpired(connection.credential, db.clock) ? 'expired' : reason,
    ]
  for (const connection of [...which])
    if (connection.daemon !== undefined && !(await holdsDaemon(connection.daemon)))
      yield [connection, 'revoked']
}

/**
 * Catches what lost signals missed: one query checks the credentials of all connections of this node, their strength
 * where a role requires it, and the admin grants of its streams. Resolves to the connections that lost their right.
 */
async function findLost(
  db: Database,
  connections: Iterable<Connection>,
  strongRoles: readonly string[],
): Promise<[Connection, Lost][]> {
  const asked = Map.groupBy(connections, keyOf)
  if (asked.size === 0) return []
  const firsts = [...asked.values()].map(([first]) => first as Connection)
  const tooWeak =
    strongRoles.length > 0
      ? sql`when not opened.strong and ${holdsAnyOf(sql`asked.account_id`, strongRoles)} then 'role_lost'`
      : sql.empty
  const rows = await db.readOnly.rows<{ place: number; lost: Lost }>(sql`
    select * from (
      select asked.place, case
          when opened.id is null then 'revoked'
          when opened.expires_at <= now() then 'expired'
          when asked.actor_id is not null and not exists (
            select from role_grant g join actor on actor.id = g.actor_id
            where g.actor_id = asked.actor_id and g.role = 'admin' and g.scope_id is null
              and ${activeGrant} and actor.deleted_at is null
          ) then 'role_lost'
          ${tooWeak}
        end as lost
      from unnest(
          ${firsts.map(({ credential }) => credential.type)}::text[],
          ${firsts.map(({ credential }) => credential.id)}::text[],
          ${firsts.map(({ account_id }) => account_id)}::uuid[],
          ${firsts.map(({ actor_id }) => actor_id)}::uuid[]
        ) with ordinality as asked (type, id, account_id, actor_id, place)
        left join lateral (
          select c.id, c.expires_at, c.strong from (
            select id, account_id, expires_at, strong from auth_session where asked.type = 'session' and id = asked.id
            union all
            select id, account_id, expires_at, strong from api_token where asked.type = 'api_token' and id = asked.id
            union all
            select 'daemon', ${keeperAccountId}, null, true where asked.type = 'daemon_token'
          ) c join account on account.id = c.account_id
          where c.account_id = asked.account_id and account.deleted_at is null
        ) opened on true
    ) judged where lost is not null`)
  return rows.flatMap(({ place, lost }) => {
    const group = asked.get(keyOf(firsts[place - 1] as Connection)) ?? []
    return group.map((connection): [Connection, Lost] => [connection, lost])
  })
}

const keyOf = ({ credential, account_id, actor_id }: Connection): string =>
  `${credential.type} ${credential.id} ${account_id} ${actor_id}`
