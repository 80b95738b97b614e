import { revokeAll } from '../accounts/revoke-all.ts'
import { sql } from '../db/db.ts'

export const {
  admin: admin_session_revoke_all,
  operator: revokeSessions,
  everyone: revokeEverySession,
} = revokeAll({
  noun: 'session',
  table: sql`auth_session`,
  live: sql`expires_at > statement_timestamp()`,
  doc: {
    admin: 'End every session of an account, which may be the caller’s own.',
    operator: 'End every session of an account. Its owner has to sign in again.',
  },
  confirm: 'Everybody has to sign in again.',
})
