import { activeGrant } from '../auth/active-grant.ts'
import type { Caller } from '../auth/caller.ts'
import { requireFresh } from '../auth/fresh.ts'
import type { Configured } from '../auth/ways-in.ts'
import type { Fail } from '../core/mutate.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { anyOf } from '../db/unplanned.ts'
import { refusal } from '../errors.ts'
import type { Scope } from '../roles/scope.ts'

export type LockedAccount = {
  id: string
  username: string
  email: string | null
  /** The folded e-mail; a migration marks one that another account already has. */
  email_key: string | null
  email_verified: boolean
  deleted_at: string | null
}

/**
 * Takes the account locks: all rows in one statement, by ascending id. Returns the accounts that exist. Afterwards,
 * read again whatever a decision depends on: what was read before the lock may have changed. Such a statement may be
 * sent together with the lock, by `Promise.all`, since those of a transaction run one after the other.
 *
 * Every transaction takes its locks in the same order, so that none deadlocks: bootstrap row, scope, accounts, guard,
 * grants, offers, then invites, sessions and tokens, and cells last. The credential of the caller may follow the lock
 * of its account at once, because whoever ends it without that lock waits for nothing else.
 */
export const lockAccounts = (db: Queryable, ids: readonly string[]): Promise<Map<string, LockedAccount>> =>
  lockThose(db, anyOf(ids))

/** The same for the account of an actor, if there is such an actor, and those in `others`. */
export const lockAccountsOf = (
  db: Queryable,
  actor_id: string,
  others: readonly string[] = [],
): Promise<Map<string, LockedAccount>> =>
  // An actor never changes its account, so no lock is needed to read it.
  lockThose(
    db,
    sql`any(array(select account_id from actor where id = ${actor_id}::uuid) || ${others}::uuid[])`,
  )

async function lockThose(db: Queryable, those: Sql): Promise<Map<string, LockedAccount>> {
  const rows = await db.rows<LockedAccount>(sql`
    select id, username, email, email_key, email_verified, deleted_at from account
    where id = ${those} order by id for no key update`)
  return new Map(rows.map((row) => [row.id, row]))
}

/** Locks one live account; refuses a missing or deleted one with `account_not_found`. */
export async function lockLiveAccount(
  db: Queryable,
  account_id: string,
  fail: Fail<'account_not_found'>,
): Promise<LockedAccount> {
  const account = (await lockAccounts(db, [account_id])).get(account_id)
  if (!account || account.deleted_at !== null) throw fail('account_not_found')
  return account
}

/** Locks one live account and returns its password hash; undefined for a missing or deleted account. */
export const lockIfLive = (
  db: Queryable,
  account_id: string,
): Promise<{ password_hash: string } | undefined> =>
  db.first<{ password_hash: string }>(sql`
    select password_hash from account where id = ${account_id}::uuid and deleted_at is null for no key update`)

type CredentialOf = { account: { id: string }; credential: Pick<Caller['credential'], 'type' | 'id'> }

/** Locks the account of a request; refuses if its credential or the account has ended meanwhile. */
export async function lockWithCredential(db: Queryable, caller: CredentialOf): Promise<LockedAccount> {
  const [locked, isHeld] = await Promise.all([
    lockLiveAccount(db, caller.account.id, () => refusal('account_vanished')),
    holdCredential(db, caller),
  ])
  if (!isHeld) throw refusal('authentication_required')
  return locked
}

/** The same for a session. */
export const lockWithSession = (
  db: Queryable,
  account_id: string,
  session_id: string | null,
): Promise<LockedAccount> =>
  lockWithCredential(db, { account: { id: account_id }, credential: { type: 'session', id: session_id } })

/**
 * As `lockWithSession`, for a request that needs a fresh session: while it waited for the lock, the account may have
 * got a second factor that the session has not proven.
 */
export async function lockWithFreshSession(
  app: Configured,
  db: Queryable,
  { account, credential }: Pick<Caller, 'account' | 'credential'>,
): Promise<LockedAccount> {
  const locked = await lockWithSession(db, account.id, credential.id)
  await requireFresh(app, db.rows, { account, credential })
  return locked
}

/**
 * Locks a session of a locked account until the commit, so that ending the session waits: what the session has asked
 * for happens before its end or not at all. False if it has ended, or expired while the transaction waited for locks.
 */
export const holdSession = (db: Queryable, account_id: string, session_id: string | null): Promise<boolean> =>
  holdCredential(db, { account: { id: account_id }, credential: { type: 'session', id: session_id } })

/** As `holdSession`, for the credential of a request, whatever its type; the daemon token has no row. */
export async function holdCredential(db: Queryable, caller: CredentialOf): Promise<boolean> {
  return (await db.one<{ is_held: boolean }>(sql`select ${heldCredential(caller)} as is_held`)).is_held
}

/** `holdCredential` as an SQL expression, for a statement that is sent after that which locks the account. */
export function heldCredential({ account, credential: { type, id } }: CredentialOf): Sql {
  if (type === 'daemon_token') return sql`true`
  const live =
    type === 'session'
      ? sql`auth_session where id = ${id} and account_id = ${account.id}::uuid and expires_at > statement_timestamp()`
      : sql`api_token where id = ${id} and (expires_at is null or expires_at > statement_timestamp())`
  return sql`(select 1 from ${live} for no key update) is not null`
}

/** Takes the guard lock, after the account locks: one transaction at a time may end an admin or keeper. */
export const takeGuardLock = (db: Queryable): Promise<unknown> =>
  db.run(sql`select pg_advisory_xact_lock(hashtextextended('cellkeep guard', 0))`)

/** What ends: the authority of an account with all its actors, of one actor, or of one grant. */
export type Ending = { account_id: string } | { actor_id: string } | { role_grant_id: string }

const active = sql`g.scope_id is null and ${activeGrant}`

/**
 * Whether this would end a keeper or the last global admin. To end one, hold the guard lock. A keeper grant protects
 * its account even on a removed actor; an admin counts only while its actor and account are live.
 */
export async function endsAuthority(
  db: Pick<Queryable, 'one'>,
  ending: Ending,
): Promise<{ keeper: boolean; lastAdmin: boolean }> {
  const within = subject(ending)
  const { keeper, ends_admin, others } = await db.one<{
    keeper: boolean
    ends_admin: boolean
    others: boolean
  }>(sql`
    select
      exists (
        select from role_grant g join actor on actor.id = g.actor_id
        where g.role = 'keeper' and ${active} and ${within}
      ) as keeper,
      exists (${admins} and ${within}) as ends_admin,
      exists (${admins} and not ${within}) as others`)
  return { keeper, lastAdmin: ends_admin && !others }
}

/** Why a delete, purge or removal is refused: it would end a keeper, or else the last admin. Null if neither. */
export async function brokenGuard(
  db: Pick<Queryable, 'one'>,
  ending: Ending,
): Promise<'cannot_delete_keeper' | 'cannot_delete_last_admin' | null> {
  const { keeper, lastAdmin } = await endsAuthority(db, ending)
  if (keeper) return 'cannot_delete_keeper'
  return lastAdmin ? 'cannot_delete_last_admin' : null
}

const admins = sql`
  select from role_grant g join actor on actor.id = g.actor_id join account on account.id = actor.account_id
  where g.role = 'admin' and ${active} and actor.deleted_at is null and account.deleted_at is null`

function subject(ending: Ending): Sql {
  if ('account_id' in ending) return sql`actor.account_id = ${ending.account_id}::uuid`
  if ('actor_id' in ending) return sql`actor.id = ${ending.actor_id}::uuid`
  return sql`g.id = ${ending.role_grant_id}::uuid`
}

/**
 * Takes the scope lock, before any account lock. Making a grant or an offer at the scope takes it shared,
 * `destroyScope` takes it exclusively, so that none is made while or after the scope is destroyed.
 */
export async function lockScope(
  db: Queryable,
  { scope_kind, scope_id }: Scope,
  mode: 'shared' | 'exclusive' = 'shared',
): Promise<void> {
  if (scope_id === null) return
  await db.run(sql`select ${scopeLock(sql`${scope_kind}::text`, sql`${scope_id}::text`, mode)}`)
}

/** The lock as an SQL expression, for a statement that reads the scope itself. */
export const scopeLock = (kind: Sql, id: Sql, mode: 'shared' | 'exclusive' = 'shared'): Sql => {
  const lock = sql.raw(mode === 'shared' ? 'pg_advisory_xact_lock_shared' : 'pg_advisory_xact_lock')
  return sql`${lock}(hashtextextended('cellkeep scope ' || ${kind} || ' ' || ${id}, 0))`
}

/**
 * Locks the account of a live actor, in one statement with the accounts in `others`, and returns its id. Actors
 * are removed only under that lock, so the actor stays live until the commit. Refuses with `actor_not_found`.
 */
export async function lockLiveActor(
  db: Queryable,
  actor_id: string,
  fail: Fail<'actor_not_found'>,
  others: readonly string[] = [],
): Promise<string> {
  const [accounts, live] = await Promise.all([
    lockAccountsOf(db, actor_id, others),
    db.first<{ account_id: string }>(sql`
      select account_id from actor where id = ${actor_id}::uuid and deleted_at is null`),
  ])
  const account = live && accounts.get(live.account_id)
  if (!account || account.deleted_at !== null) throw fail('actor_not_found')
  return account.id
}
