import type { Config } from '../config/config.ts'
import { type Sql, sql } from '../db/sql.ts'
import type { Registry } from '../registry/registry.ts'
import { hasPassword } from './password.ts'

/**
 * The credentials that an account can prove its identity with, as SQL fragments. `id` is an expression for the id of
 * the account.
 */

/**
 * A second factor is asked for at each sign-in, whether or not its feature is still on. `offset 0` makes it one index
 * probe per table: the planner may otherwise read the tables whole while they are small.
 */
export const secondFactorActive = (id: Sql): Sql => sql`(
    exists (select from account_totp where account_id = ${id} and confirmed_at is not null offset 0)
    or exists (select from account_passkey where account_id = ${id} and second_factor offset 0)
  )`

/** The configuration decides for which host passkeys are valid and which providers count. */
export type Configured = { config: Config; registry: Registry }

/**
 * The ways in of `account`, best known first, as an array of texts: `password`, `passkey`, `oidc:<provider>`. A
 * passkey counts if it may be the first factor, a link if the issuer of its identity is configured.
 */
export function waysIn({ config, registry }: Configured): Sql {
  const rp_id = config.passkeys ? config.rp_id : null
  const providers = [...registry.providers.values()]
  return sql`(
    array(select 'password' where ${hasPassword})
    || array(select 'passkey' where exists (
      select from account_passkey where account_id = account.id and first_factor and rp_id = ${rp_id}))
    || array(select 'oidc:' || p.id
      from unnest(${providers.map(({ id }) => id)}::text[], ${providers.map(({ issuer }) => issuer)}::text[])
        as p (id, issuer)
      where exists (select from account_link l where l.account_id = account.id and l.issuer = p.issuer)
      order by p.id)
  )`
}
