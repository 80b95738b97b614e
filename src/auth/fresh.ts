import type { Config } from '../config/config.ts'
import { type Sql, sql } from '../db/sql.ts'
import { refusal } from '../errors.ts'
import type { Caller } from './caller.ts'
import { type Configured, secondFactorActive, waysIn } from './ways-in.ts'

/** Whether the session `s` has proven the second factor, if its account has one. */
export const isStrongEnough = sql`(s.strong or not ${secondFactorActive(sql`s.account_id`)})`

/**
 * Whether the session `s` was proven recently, and with the second factor if its account has one: at the time of the
 * statement, since its transaction may have waited for a lock meanwhile. A time to come is from before the clock was set
 * back, and would stay fresh until then.
 */
const isFresh = ({ fresh_seconds }: Config): Sql => sql`(
    s.authenticated_at between statement_timestamp() - ${fresh_seconds}::int * interval '1 second'
      and statement_timestamp() + interval '1 minute' and ${isStrongEnough}
  )`

/** Requires a fresh session; a daemon token passes. `read` runs one statement. */
export async function requireFresh(
  { config, registry }: Configured,
  read: <T>(query: Sql) => Promise<T[]>,
  { account, credential }: Pick<Caller, 'account' | 'credential'>,
): Promise<void> {
  if (credential.type === 'daemon_token') return
  const [session] = await read<{ fresh: boolean; methods: string[] }>(sql`
    select ${isFresh(config)} as fresh, ${waysIn({ config, registry })} as methods
    from auth_session s join account on account.id = s.account_id
    where s.id = ${credential.id} and s.account_id = ${account.id}::uuid and s.expires_at > statement_timestamp()`)
  if (!session) throw refusal('authentication_required')
  const { fresh, methods } = session
  if (!fresh) throw refusal('fresh_authentication_required', { max_age: config.fresh_seconds, methods })
}
