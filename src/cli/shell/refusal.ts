import { actions } from '../../actions.ts'
import type { ServiceError } from '../../errors.ts'
import { printable } from '../../log/text.ts'
import { catalogue, type Reason } from '../../reasons.ts'
import type { Issue } from '../../wire/issues.ts'

/** Messages for the shell; those of the catalogue address callers of the API. */
const meanings: Partial<Record<Reason, string>> = {
  invalid_params: 'The arguments are not valid:',
  actor_required: 'The account has several actors. Choose one:',
  purge_not_confirmed: 'Nothing was removed. A purge cannot be undone.',
  cannot_delete_keeper: 'The account holds the role keeper.',
  last_actor: 'An account needs at least one actor.',
  actor_limit: 'The account has the maximum number of actors.',
  role_grant_path_not_allowed: 'This role cannot be granted or revoked by a command.',
  token_scope_required: 'The scope of the API token does not cover this.',
  unknown_method: 'The scope names a method that does not exist.',
  role_grant_builtin_scoped: 'The roles keeper and admin are global: they take no scope.',
  internal_error: 'The server failed unexpectedly.',
  busy: 'The machine is overloaded; try again.',
  service_unavailable: 'The database cannot be reached.',
  second_factor_required: 'The account has a second factor; its code can be entered only at a terminal.',
}

/** What to do next, for messages that don't say it. */
const hints: Partial<Record<Reason, string>> = {
  account_not_found: '`cellkeep account list --deleted` lists all accounts.',
  actor_not_found: '`cellkeep actor list REF` shows the actors of an account.',
  already_bootstrapped: '`cellkeep keeper transfer REF` makes another account the keeper.',
  purge_not_confirmed: 'To do it, add --confirm.',
  cannot_delete_keeper: 'Run `cellkeep keeper transfer REF` with another account first.',
  cannot_delete_last_admin: 'Run `cellkeep role assign REF admin` for another account first.',
  cannot_revoke_last_admin: 'Run `cellkeep role assign REF admin` for another account first.',
  last_actor: '`cellkeep account delete REF` deletes the whole account.',
  actor_limit: 'Remove an actor, or raise CELLKEEP_MAX_ACTORS.',
  role_grant_path_not_allowed:
    'Declare the role in the config file with the grant path `admin`. For keeper, use `cellkeep keeper transfer`.',
  unknown_method: 'docs/api.md lists the built-in methods, /api/openrpc.json lists all.',
  internal_error: 'The line with the event request_failed in its log has the cause.',
  second_factor_required: 'Run the command at a terminal; in scripts set CELLKEEP_TOKEN.',
}

/** The same for what is wrong with an argument. */
const issueHints: Readonly<Record<string, string>> = {
  unknown_scope_kind: 'Kinds of scope are declared as `scope_kinds` in the config file.',
}

export const meaningOf = (reason: Reason): string =>
  meanings[reason] ?? (catalogue as Record<string, { doc: string }>)[reason]?.doc ?? `Refused: ${reason}.`

type Facts = {
  required_credential_types?: string[]
  required_roles?: string[]
  required_scope?: string
  retry_after?: number
  outcome?: 'none' | 'unknown'
}

/** What a refused call would have needed. */
function needsOf(facts: Facts) {
  const { required_credential_types, required_roles, required_scope, retry_after, outcome } = facts
  const types = required_credential_types?.map((type) => type.replaceAll('_', ' ')).join(' or ')
  const method = /^rpc:(.*)$/s.exec(required_scope ?? '')?.[1]
  return [
    types && `This takes a credential of the type ${types}.`,
    required_roles && `This takes the role ${required_roles.join(' or ')}.`,
    method &&
      `This takes a token whose scope is full${isQuery(method) ? ', read_only' : ''} or names ${method}.`,
    outcome === 'unknown' && 'It is unknown whether it was done: check before you repeat it.',
    retry_after !== undefined && `Try again in ${retry_after} s.`,
  ].filter((need): need is string => !!need)
}

const isQuery = (method: string): boolean =>
  (actions as Record<string, { side_effects: boolean }>)[method]?.side_effects === false

/** A refusal as text for standard error, with its details and a hint, or as JSON. */
export function refusalText({ data }: ServiceError, json: boolean): string {
  const {
    reason,
    issues = [],
    available = [],
    ...facts
  } = data as {
    reason: Reason
    issues?: Issue[]
    available?: { id: string; name: string }[]
  } & Facts
  if (json) return `${JSON.stringify({ ...data, message: meaningOf(reason).replace(/:$/, '.') })}\n`
  const hint = hints[reason] ?? issues.map(({ code }) => issueHints[code]).find(Boolean)
  const lines = [
    meaningOf(reason),
    ...issues.map(({ path, message }) => `  ${path.length > 0 ? `${path.join('.')}: ` : ''}${message}`),
    ...available.map(({ id, name }) => `  --actor ${id}  ${name}`),
    ...needsOf(facts).map((need) => `  ${need}`),
    ...(hint === undefined ? [] : [`  ${hint}`]),
  ]
  return `${lines.map(printable).join('\n')}\n`
}
