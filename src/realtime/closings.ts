import type { AuditRow } from '../audit/audit.ts'
import type { CredentialType } from '../auth/identity.ts'

/**
 * What a committed change means for live connections.
 * - `credentials`: sockets and streams of the credentials in `ended` close (sockets with 4001); other sockets of the
 *   account close with 4006. `ids` null: all credentials of that type.
 * - `account`: all connections of the account close.
 * - `actor`: its streams are rechecked; sockets stay open, their next message is refused.
 * - `keeper`: everything that a daemon token opened closes, whichever account it acted for.
 */
export type Closing =
  | {
      kind: 'credentials'
      account_id: string
      ended: { type: CredentialType; ids: string[] | null }[]
      /** Not on request: the newest session of the account pushed out the oldest. */
      evicted?: boolean
    }
  | { kind: 'account'; account_id: string }
  | { kind: 'actor'; actor_id: string }
  | { kind: 'keeper' }

type Judge = (row: AuditRow, metadata: Record<string, unknown>) => Closing | undefined

const credentials = (row: AuditRow, ...ended: { type: CredentialType; ids: string[] | null }[]): Closing => ({
  kind: 'credentials',
  account_id: row.target_account_id as string,
  ended,
})
const oneSession: Judge = (row, { session_id, cause }) => ({
  ...credentials(row, { type: 'session', ids: [session_id as string] }),
  ...(cause === 'cap' && { evicted: true }),
})
const actor: Judge = (row) => ({ kind: 'actor', actor_id: row.target_actor_id as string })

/**
 * Closings derive from the audit rows that a mutation declares, whether or not they could be written. So no method
 * can end a credential and forget the sockets it opened.
 */
const closings: Record<string, Judge> = {
  logout: oneSession,
  session_revoke: oneSession,
  session_revoke_all: (row) => credentials(row, { type: 'session', ids: null }),
  token_revoke: (row, { token_id }) => credentials(row, { type: 'api_token', ids: [token_id as string] }),
  token_revoke_all: (row) => credentials(row, { type: 'api_token', ids: null }),
  password_change: (row) =>
    credentials(row, { type: 'session', ids: null }, { type: 'api_token', ids: null }),
  account_delete: (row) => ({ kind: 'account', account_id: row.target_account_id as string }),
  account_purge: (row) => ({ kind: 'account', account_id: row.target_account_id as string }),
  actor_delete: actor,
  actor_purge: actor,
  role_grant_revoke: (row, metadata) => {
    if (metadata.cause === 'keeper_transfer') return { kind: 'keeper' }
    return metadata.role === 'admin' ? actor(row, metadata) : undefined
  },
}

/** What the success rows of one mutation close, in the order of the rows. */
export const closingsOf = (rows: readonly AuditRow[]): Closing[] =>
  // A consumer's event may be named like a property of Object.prototype.
  rows.flatMap((row) =>
    Object.hasOwn(closings, row.event_type)
      ? (closings[row.event_type]?.(row, row.metadata ?? {}) ?? [])
      : [],
  )

type Opened = { account_id: string; credential: { type: CredentialType; id: string | null } }

/**
 * What closings mean for a connection: `own` if its credential ended, `other` if another credential of the account
 * did. `own` wins if one commit has both: a login may end two sessions.
 */
export function verdictOf(closings: readonly Closing[], opened: Opened): 'own' | 'other' | undefined {
  const verdicts = closings.map((closing) => verdict(closing, opened))
  return verdicts.includes('own') ? 'own' : verdicts.find((one) => one !== undefined)
}

function verdict(closing: Closing, { account_id, credential }: Opened): 'own' | 'other' | undefined {
  if (closing.kind === 'keeper') return credential.type === 'daemon_token' ? 'own' : undefined
  if (closing.kind === 'actor' || closing.account_id !== account_id) return undefined
  if (closing.kind === 'account') return 'own'
  const isOwn = closing.ended.some(
    ({ type, ids }) => type === credential.type && (ids === null || ids.includes(credential.id as string)),
  )
  return isOwn ? 'own' : 'other'
}
