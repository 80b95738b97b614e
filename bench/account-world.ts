import type pg from 'pg'
import { callers, indexOf } from './world.ts'

/** Holders of one scope, and actors whose name begins with `rarePrefix`; the same number in every world. */
export const scopeHolders = 200
const rareNames = 10
export const commonPrefix = 'maria'
export const rarePrefix = 'zyx'

/**
 * A generated world of accounts, with ids derived as in `world.ts`. It has a year of signups: three in ten share
 * a first name, one in ten has a second actor, one in fifty is deleted. Half of the actors hold a role in a scope,
 * one in a hundred has an offer. Each account has one session, one in twenty of them expired.
 */
export async function generateAccounts(client: pg.Client, accounts: number): Promise<void> {
  const scopes = Math.max(1, Math.floor(accounts / 2 / scopeHolders))
  // The callers are neither deleted nor expired.
  const ordinary = `i >= ${callers.length}`
  const age = `now() - interval '1 year' * ((${accounts} - i) / ${accounts}::float8)`
  await client.query(`
    set synchronous_commit = off;
    set maintenance_work_mem = '256MB';
    create function pg_temp.id(what text, i bigint) returns uuid language sql immutable
      as $$ select md5(what || ':' || i)::uuid $$;`)
  const all = `generate_series(0, ${accounts - 1}) i`
  await client.query(`
    insert into account (id, username, email, email_key, password_hash, created_at, deleted_at)
    select pg_temp.id('account', i), 'user' || i, email, email, '-', ${age},
      case when i % 50 = 0 and ${ordinary} then now() end
    from ${all}, lateral (select case when i % 3 = 0 then 'user' || i || '@example.com' end) e (email)`)
  await client.query(`
    insert into actor (id, account_id, name, name_key, created_at, deleted_at, deleted_with_account)
    select pg_temp.id(what, i), pg_temp.id('account', i), name, name, ${age}, gone, gone is not null
    from ${all} join (values ('actor', 1), ('second', 10)) a (what, every) on i % every = 0,
      lateral (select case when i % 50 = 0 and ${ordinary} then now() end) g (gone),
      lateral (select case
        when i % (${accounts} / ${rareNames}) = 7 then '${rarePrefix} ' || i
        when i % 10 < 3 then '${commonPrefix} ' || i
        else chr(97 + i % 25) || substr(md5(i::text), 1, 8) end) n (name)`)
  await client.query(`
    insert into role_grant (actor_id, role, scope_kind, scope_id, created_at)
    select pg_temp.id('actor', i), 'team', 'scope', pg_temp.id('scope', abs(hashint8(i)::bigint) % ${scopes}), ${age}
    from ${all} where i % 2 = 0 and ${ordinary}
    union all select pg_temp.id('actor', ${indexOf('admin')}), 'admin', null, null, now()`)
  await client.query(`
    insert into role_grant_offer (from_actor_id, from_account_id, to_account_id, role, scope_kind, scope_id, expires_at)
    select pg_temp.id('actor', ${indexOf('admin')}), pg_temp.id('account', ${indexOf('admin')}), pg_temp.id('account', i),
      'team', 'scope', pg_temp.id('scope', i % ${scopes}), now() + interval '10 days'
    from ${all} where i % 100 = 0`)
  await client.query(`
    insert into auth_session (id, account_id, created_at, expires_at)
    select encode(sha256(('session ' || i)::bytea), 'hex'), pg_temp.id('account', i), made,
      made + case when i % 20 = 0 then interval '0' else interval '30 days' end
    from ${all},
      lateral (select now() - interval '29 days' * ((${accounts} - i) / ${accounts}::float8)) m (made)`)
  await client.query('vacuum (analyze)')
}
