import type { Caller } from '../auth/caller.ts'
import type { TokenScope } from '../auth/identity.ts'
import { refusal } from '../errors.ts'
import type { AuthSpec } from './method.ts'

/** The guards that need no body: a credential is present, its type and its token scope fit. */
export function guardCredential(
  auth: AuthSpec,
  caller: Caller | null,
  target: { scope: string; method?: string; side_effects?: boolean },
): void {
  if (!caller) {
    if (auth.account === 'required') throw refusal('authentication_required')
    return
  }
  const { credential_types: types } = auth
  if (types && !types.includes(caller.credential.type))
    throw refusal('credential_type_required', { required_credential_types: types })
  if (!reaches(caller.credential.scope, auth, target))
    throw refusal('token_scope_required', { required_scope: target.scope })
}

/** Whether a token scope covers the target; a `required_scope` that a consumer declares needs `full`. */
function reaches(
  scope: TokenScope,
  auth: AuthSpec,
  target: { method?: string; side_effects?: boolean },
): boolean {
  if (scope.kind === 'full') return true
  if (target.method === undefined || auth.required_scope) return false
  return scope.kind === 'read_only' ? target.side_effects === false : scope.methods.includes(target.method)
}

/** Requires any of the roles, as an active global grant of the acting actor. */
export function guardRole(
  auth: AuthSpec,
  grants: readonly { role: string; scope_id: string | null }[],
): void {
  if (!auth.roles) return
  if (!grants.some((grant) => grant.scope_id === null && auth.roles?.includes(grant.role)))
    throw refusal('insufficient_permissions', { required_roles: auth.roles })
}
