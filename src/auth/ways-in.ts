import type { Config } from '../config/config.ts'
import { type Sql, sql } from '../db/sql.ts'

/** What an account can prove itself with, as SQL fragments. `id` is an expression for the id of the account. */

/** A second factor is asked for at each sign-in, whether or not its feature is still on. */
export const secondFactorActive = (id: Sql): Sql => sql`(
    exists (select from account_totp where account_id = ${id} and confirmed_at is not null)
    or exists (select from account_passkey where account_id = ${id} and second_factor)
  )`

/** Where passkeys belong and which providers are configured: others do not count. */
const configured = ({ passkeys, rp_id }: Config): { rp_id: string | null; providers: string[] } => ({
  rp_id: passkeys ? rp_id : null,
  providers: [],
})

/**
 * The ways in of `account`, best known first, as an array of texts: `password`, `passkey`, `oidc:<provider>`. A
 * passkey counts if it may be the first factor, a link if its provider is configured.
 */
export function waysIn(config: Config): Sql {
  const { rp_id, providers } = configured(config)
  return sql`(
    array(select 'password' where account.password_hash <> '*')
    || array(select 'passkey' where exists (
      select from account_passkey where account_id = account.id and first_factor and rp_id = ${rp_id}))
    || array(select 'oidc:' || provider from account_link
      where account_id = account.id and provider = any(${providers}::text[]) order by provider)
  )`
}
