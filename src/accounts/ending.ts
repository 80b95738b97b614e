import type { Audit, AuditSubject } from '../audit/audit.ts'
import { recorded } from '../core/mutate.ts'
import { type Detail, onlyVia, type Via } from '../core/operate.ts'
import { type Queryable, sql } from '../db/db.ts'
import { refusal, type ServiceError } from '../errors.ts'
import { voidTickets } from '../tickets/tickets.ts'
import { brokenGuard, type LockedAccount, lockAccounts, takeGuardLock } from './locks.ts'

export type EndingEvent = 'account_delete' | 'account_purge'

/** Metadata of an actor event: null for requests, `via` for operator and library calls. */
export const actorMetadata = ({ via }: Via): { via: string } | null => (via === undefined ? null : { via })

/** The failure row has the id as `attempted_account_id` only, because no stored account has it. */
export const noAccount = (
  event: EndingEvent | 'account_undelete' | 'session_revoke_all' | 'token_revoke_all',
  account_id: string,
  detail: Detail,
): ServiceError =>
  recorded<EndingEvent>(event as EndingEvent, refusal('account_not_found'), {
    reason: 'account_not_found',
    attempted_account_id: account_id,
    ...onlyVia(detail),
  })

/** Locks an account, deleted or not. A missing one is refused with a failure row. */
export async function lockAccountFor(
  db: Queryable,
  event: EndingEvent | 'account_undelete',
  account_id: string,
  detail: Detail,
): Promise<LockedAccount> {
  const account = (await lockAccounts(db, [account_id])).get(account_id)
  if (!account) throw noAccount(event, account_id, detail)
  return account
}

/** Takes the guard lock, then refuses what `brokenGuard` names. The caller holds the account lock. */
export async function guardEnding(
  db: Queryable,
  event: EndingEvent,
  account_id: string,
  detail: Detail,
): Promise<void> {
  await takeGuardLock(db)
  const reason = await brokenGuard(db, { account_id })
  if (reason)
    throw recorded(event, refusal(reason), { reason, ...onlyVia(detail) }, { target_account_id: account_id })
}

export type EndedCredentials = { sessions_revoked: number; tokens_revoked: number }

/**
 * Ends every session, token, one-time link and begun sign-in of the account. The caller holds its lock. Sessions that
 * had already expired are removed, but not counted.
 */
export const endCredentials = (db: Queryable, account_id: string): Promise<EndedCredentials> =>
  db.one<EndedCredentials>(sql`
    with flows as (
      delete from sign_in_flow where account_id = ${account_id}::uuid
    ), sessions as (
      delete from auth_session where account_id = ${account_id}::uuid returning expires_at > now() as lived
    ), tokens as (
      delete from api_token where account_id = ${account_id}::uuid returning 1
    ), tickets as (${voidTickets(account_id)})
    select (select count(*) from sessions where lived) as sessions_revoked,
      (select count(*) from tokens) as tokens_revoked`)

/** Writes one audit row for each actor that an account event affected. */
export function auditActors(
  audit: Audit,
  event: 'actor_delete' | 'actor_undelete' | 'actor_purge',
  account_id: string,
  actor_ids: readonly string[],
  detail: Detail,
): void {
  for (const actor_id of actor_ids) {
    const target: Partial<AuditSubject> = { target_account_id: account_id, target_actor_id: actor_id }
    audit(event, actorMetadata(detail), target)
  }
}
