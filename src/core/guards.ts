import type { Caller, Candidate } from '../auth/caller.ts'
import type { RoleGrant, TokenScope } from '../auth/identity.ts'
import { refusal, type ServiceError } from '../errors.ts'
import { issue } from '../wire/issues.ts'
import { Uuid } from '../wire/types.ts'
import type { AuthSpec, ScopedRole } from './method.ts'

/** The guards that need no body: they check that a credential is present, and its type, token scope and strength. */
export function guardCredential(
  auth: AuthSpec,
  caller: Caller | null,
  target: { scope: string; method?: string; side_effects?: boolean; before_enrolment?: boolean },
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
  if (!target.before_enrolment) guardStrength(caller)
}

/** Refuses a weak credential of an account with a role that requires a second factor. */
export function guardStrength({ must_enrol }: Caller): void {
  if (must_enrol) throw refusal('second_factor_enrolment_required')
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

type Grant = Pick<RoleGrant, 'role' | 'scope_kind' | 'scope_id'>

/**
 * Requires any of the roles, as an active grant of the acting actor. A scoped role may be held in any scope here;
 * `guardScope` checks the scope after the input has been validated. A caller who holds the role nowhere is refused
 * here, and so learns nothing about the input.
 */
export function guardRole(auth: AuthSpec, grants: readonly Grant[]): void {
  if (!auth.roles) return
  const counts = ({ role, scope_id }: Grant): boolean | undefined =>
    auth.roles?.some((asked) =>
      typeof asked === 'string' ? scope_id === null && asked === role : asked.role === role,
    )
  if (!grants.some(counts)) throw lacking(auth.roles)
}

/** Requires any of the roles, globally or in the scope that the input names. */
export function guardScope(
  { roles = [] }: AuthSpec,
  grants: readonly Grant[],
  input: unknown,
  method: string,
): void {
  const holds = (asked: string | ScopedRole): boolean => {
    const named = typeof asked === 'string' ? asked : asked.role
    const held = grants.filter(({ role }) => role === named)
    if (typeof asked === 'string' || held.length === 0) return held.some(({ scope_id }) => scope_id === null)
    const id: unknown = asked.in(input as never) ?? null
    if (id !== null && typeof id !== 'string')
      throw new TypeError(`${method}: \`in\` of the role ${named} must return the id of a scope, or null`)
    const { scope_kind } = asked
    // Scope ids are stored in lower case, but schemas may accept upper case.
    const scope = id?.toLowerCase()
    return held.some(
      (grant) => grant.scope_id === null || (grant.scope_kind === scope_kind && grant.scope_id === scope),
    )
  }
  if (!roles.some(holds)) throw lacking(roles)
}

const lacking = (roles: NonNullable<AuthSpec['roles']>): ServiceError =>
  refusal('insufficient_permissions', { required_roles: roles.map(roleName) })

export const roleName = (asked: string | ScopedRole): string =>
  typeof asked === 'string' ? asked : asked.role

const actingRule = 'The id of an actor of the account is required.'

/**
 * Resolves the acting actor: the one the caller named, else the account's only one, else a refusal that lists
 * the candidates. `acting` is the raw input value; undefined means it was not sent. Returns null when the method
 * resolves no actor.
 */
export function resolveActor(auth: AuthSpec, caller: Caller | null, acting: unknown): Candidate | null {
  if (auth.actor === 'none') return null
  const named = acting === undefined ? undefined : Uuid.safeParse(acting)
  if (named && !named.success)
    throw refusal('invalid_params', {
      issues: [issue(['acting'], typeof acting === 'string' ? 'invalid_format' : 'invalid_type', actingRule)],
    })
  if (!caller) return null
  const candidates = caller.candidates ?? []
  if (candidates.length === 0) throw refusal('no_actors_on_account')
  if (named) {
    const chosen = candidates.find((candidate) => candidate.id === named.data)
    if (!chosen) throw refusal('actor_not_on_account')
    return chosen
  }
  if (candidates.length > 1)
    throw refusal('actor_required', { available: candidates.map(({ id, name }) => ({ id, name })) })
  return candidates[0] as Candidate
}
