import { catalogue, type Reason, type ServiceError } from '../errors.ts'
import { printable } from '../log/text.ts'
import type { Issue } from '../wire/issues.ts'

/** What a reason means in the shell, where the catalogue speaks to callers of the API. */
const meanings: Partial<Record<Reason, string>> = {
  invalid_params: 'That cannot be done as it was typed:',
  actor_required: 'The account has several actors. Say which one is meant:',
  purge_not_confirmed: 'Nothing was removed. A purge cannot be taken back.',
  cannot_delete_keeper: 'The account holds the role keeper.',
  email_taken: 'Another account has this e-mail.',
  last_actor: 'An account keeps one live actor.',
  actor_limit: 'The account has as many actors as are allowed.',
  role_grant_path_not_allowed: 'This role cannot be given or taken by a command.',
  unknown_method: 'The scope names a method that does not exist.',
  role_grant_builtin_scoped: 'The roles keeper and admin hold everywhere, not at a scope.',
  busy: 'The machine has too much to do; try again.',
}

/** What to do next, where the meaning leaves that open. */
const hints: Partial<Record<Reason, string>> = {
  account_not_found: '`cellkeep account list --deleted` shows them all.',
  actor_not_found: '`cellkeep actor list REF` shows the actors of an account.',
  already_bootstrapped: '`cellkeep keeper transfer REF` makes another account the keeper.',
  purge_not_confirmed: 'Add --confirm to do it.',
  cannot_delete_keeper: 'First `cellkeep keeper transfer REF`, to somebody else.',
  cannot_delete_last_admin: 'First `cellkeep role assign REF admin`, for somebody else.',
  cannot_revoke_last_admin: 'First `cellkeep role assign REF admin`, for somebody else.',
  last_actor: '`cellkeep account delete REF` ends the whole account.',
  actor_limit: 'Remove one, or raise CELLKEEP_MAX_ACTORS.',
  role_grant_path_not_allowed:
    'It must be declared in the config file with the grant path `admin`; `cellkeep keeper transfer` moves keeper.',
  unknown_method: '`docs/api.md` lists them.',
}

export const meaningOf = (reason: Reason): string =>
  meanings[reason] ?? (catalogue as Record<string, { doc: string }>)[reason]?.doc ?? `Refused: ${reason}.`

/** A refusal for standard error: what it means, what to do, and what came with it; or all of that as JSON. */
export function refusalText({ data }: ServiceError, json: boolean): string {
  const {
    reason,
    issues = [],
    available = [],
  } = data as {
    reason: Reason
    issues?: Issue[]
    available?: { id: string; name: string }[]
  }
  if (json) return `${JSON.stringify({ ...data, message: meaningOf(reason) })}\n`
  const hint = hints[reason]
  const lines = [
    meaningOf(reason),
    ...issues.map(({ path, message }) => `  ${path.length > 0 ? `${path.join('.')}: ` : ''}${message}`),
    ...available.map(({ id, name }) => `  --actor ${id}  ${name}`),
    ...(hint === undefined ? [] : [`  ${hint}`]),
  ]
  return `${lines.map(printable).join('\n')}\n`
}
