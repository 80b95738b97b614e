import { revokeAll } from '../accounts/revoke-all.ts'
import { sql } from '../db/db.ts'

export const {
  admin: admin_token_revoke_all,
  operator: revokeTokens,
  everyone: revokeEveryToken,
} = revokeAll({
  noun: 'token',
  table: sql`api_token`,
  live: sql`true`,
  doc: {
    admin: 'End every API token of an account, expired ones included.',
    operator: 'End every token of an account, expired ones included.',
  },
  confirm: 'Every script of every account needs a new token.',
})
