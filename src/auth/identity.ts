/** The caller: its account, actors and credential, as read from the database. */

export type CredentialType = 'session' | 'api_token' | 'daemon_token'

export type Account = {
  id: string
  username: string
  email: string | null
  email_verified: boolean
  created_at: string
}
export type Actor = { id: string; name: string }
export type RoleGrant = {
  id: string
  actor_id: string
  role: string
  scope_kind: string | null
  scope_id: string | null
  created_at: string
  expires_at: string | null
  granted_by: string | null
}
export type TokenScope = { kind: 'full' } | { kind: 'read_only' } | { kind: 'methods'; methods: string[] }
export type Credential = {
  type: CredentialType
  id: string | null
  scope: TokenScope
  expires_at: string | null
  /** True: proven with more than one factor, or created by a session that was. */
  strong: boolean
}
