import { z } from 'zod'
import { type Audit, type AuditSubject, noSubject } from '../audit/audit.ts'
import type { Carriers } from '../auth/caller.ts'
import { sessionIdOf, sessionLifetimeSeconds } from '../auth/cookie.ts'
import { randomToken } from '../auth/secrets.ts'
import type { App } from '../core/app.ts'
import { mutate } from '../core/mutate.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { rememberAddress } from './addresses.ts'

/** Wire form of a session. */
export const AuthSession = z.object({
  id: z.string(),
  account_id: Uuid,
  created_at: z.string(),
  expires_at: z.string(),
  /** When its owner last proved who they are, and how. */
  authenticated_at: z.string(),
  methods: z.array(z.string()),
  strong: z.boolean(),
})

/** The columns of a session `s`, as `AuthSession` has them. */
export const sessionColumns = sql.raw(
  Object.keys(AuthSession.shape)
    .map((column) => `s.${column}`)
    .join(', '),
)

/** What a person has proven by signing in, in order. `strong`: with a second factor, or a passkey that checks both. */
export type Proof = { methods: readonly SignInMethod[]; strong?: boolean }
export type SignInMethod =
  | 'password'
  | 'totp'
  | 'recovery_code'
  | 'passkey'
  | 'oidc'
  | 'bootstrap'
  | 'signup'
  | 'library'

const lifetime = sql.raw(`interval '${sessionLifetimeSeconds} seconds'`)

export type StartedSession = {
  session_id: string
  account_id: string
  /** The `Set-Cookie` value. Send it only after the commit. */
  cookie: string
  expires_at: string
  /** The sessions that this one replaced or pushed out. */
  ended: { session_id: string; cause: 'cap' | 'replaced' | 'rotated' }[]
}

type Start = {
  account_id: string
  proof: Proof
  /** What came with the request: the session in it ends if it belongs to the account. */
  presented: Carriers
  /** The address to remember as one that the account signs in from. */
  ip?: string | undefined
  /** Why the presented session ends. */
  cause?: 'replaced' | 'rotated'
}

/**
 * Opens a session inside the caller's transaction, which holds the account lock. Ends the presented session if it
 * belongs to the same account, and the oldest sessions beyond the max.
 */
export async function startSession(
  app: App,
  db: Queryable,
  { account_id, proof, presented, ip, cause = 'replaced' }: Start,
): Promise<StartedSession> {
  const token = randomToken()
  const session_id = sessionIdOf(token)
  const old = presentedId(presented)
  const max = app.config.max_sessions
  const { expires_at, replaced, evicted } = await db.one<{
    expires_at: string
    replaced: string[]
    evicted: string[]
  }>(sql`
    with replaced as (
      delete from auth_session
      where id = ${old} and account_id = ${account_id}::uuid and expires_at > statement_timestamp()
      returning id
    ), evicted as (
      delete from auth_session where id in (
        select id from auth_session
        where account_id = ${account_id}::uuid and expires_at > statement_timestamp() and id is distinct from ${old}
        order by created_at desc, id desc
        offset ${max === null ? null : max - 1} limit ${max === null ? 0 : null}
      ) returning id
    ), made as (
      insert into auth_session (id, account_id, created_at, expires_at, authenticated_at, methods, strong)
      values (${session_id}, ${account_id}::uuid, now(), now() + ${lifetime}, now(),
        ${[...proof.methods]}::text[], ${proof.strong ?? false})
      returning expires_at
    )${ip === undefined ? sql.empty : rememberAddress(account_id, ip)}
    select made.expires_at,
      array(select id from replaced) as replaced, array(select id from evicted order by id) as evicted
    from made`)
  return {
    session_id,
    account_id,
    cookie: app.sessionCookie.issue(token, expires_at),
    expires_at,
    ended: [
      ...replaced.map((id) => ({ session_id: id, cause })),
      ...evicted.map((id) => ({ session_id: id, cause: 'cap' as const })),
    ],
  }
}

/** Records that a session has proven a second factor. A method that is enrolled again is listed only once. */
export const strengthen = (session_id: string | null, method: 'totp' | 'passkey'): Sql => sql`
  update auth_session set strong = true,
    methods = case when ${method} = any(methods) then methods else methods || ${method}::text end
  where id = ${session_id}`

/** Audits the sessions that ended for a new one. The account of the session is the subject too. */
export function auditEnded(audit: Audit, { account_id, ended }: StartedSession): void {
  for (const one of ended) audit('session_revoke', one, ownSession(account_id))
}

const ownSession = (account_id: string): Partial<AuditSubject> => ({
  actor_id: null,
  account_id,
  target_account_id: account_id,
})

/**
 * Ends the session of another account that a browser still had when it signed in. This runs in a transaction of
 * its own: the two accounts are never locked together, so two browsers that swap accounts cannot deadlock.
 */
export async function endForeignSession(
  app: App,
  account_id: string,
  presented: Carriers,
  ip: string | null,
): Promise<void> {
  const old = presentedId(presented)
  if (old === null) return
  try {
    await mutate(app, 'session_revoke', { subject: { ...noSubject, ip } }, async ({ db, audit }) => {
      const ended = await db.first<{ account_id: string }>(sql`
        delete from auth_session where id = ${old} and account_id <> ${account_id}::uuid and expires_at > now()
        returning account_id`)
      if (ended) audit('session_revoke', { session_id: old, cause: 'replaced' }, ownSession(ended.account_id))
    })
  } catch (error) {
    app.log.error(
      { event: 'credential_end_failed', err: error },
      'cannot end the session of a replaced cookie; it stays valid until it expires',
    )
  }
}

/** The session in a request's cookie, which may have ended. */
export const presentedId = ({ cookie }: Carriers): string | null =>
  cookie.state === 'good' ? cookie.sessionId : null
