import { activeGrant } from '../auth/active-grant.ts'
import { type Database, sql } from '../db/db.ts'

export type Authority = { bootstrapped: boolean; accounts: boolean; keepers: string[]; admins: boolean }

/** Who holds keeper and admin, by username. */
export const readAuthority = (db: Database): Promise<Authority> =>
  db.readOnly.one<Authority>(sql`
    with held as (
      select g.role, account.username, g.actor_id
      from role_grant g join actor on actor.id = g.actor_id join account on account.id = actor.account_id
      where g.role in ('keeper', 'admin') and g.scope_id is null and ${activeGrant}
        and actor.deleted_at is null and account.deleted_at is null
    )
    select (select bootstrapped from bootstrap_lock) as bootstrapped,
      exists (select from account) as accounts,
      array(select username from held where role = 'keeper' order by username) as keepers,
      exists (select from held where role = 'admin') as admins`)

/** An installation with accounts must have one keeper and an admin. */
export function missingAuthority({ bootstrapped, keepers, admins }: Authority) {
  const findings: { finding: string; what: string; remedy: string }[] = []
  const add = (finding: string, what: string, remedy: string): void =>
    void findings.push({ finding, what, remedy })
  if (keepers.length === 0)
    add(
      'no_keeper',
      'There is no keeper.',
      bootstrapped
        ? 'Run `cellkeep keeper transfer REF` with the account of the new keeper.'
        : 'Run `cellkeep account create --username NAME --keeper`, or bootstrap with the token file.',
    )
  if (keepers.length > 1)
    add(
      'many_keepers',
      `There are ${keepers.length} keepers: ${keepers.join(', ')}.`,
      'Run `cellkeep keeper transfer REF`, which leaves that account as the only keeper.',
    )
  if (!admins)
    add(
      'no_admin',
      'There is no admin.',
      'Run `cellkeep role assign REF admin` with the account of the new admin.',
    )
  return findings
}
