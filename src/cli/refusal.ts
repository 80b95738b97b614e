import type { Issue } from '../core/issues.ts'
import { printable } from '../core/log-text.ts'
import { catalogue, type Reason, type ServiceError } from '../errors.ts'

/** What to do in the shell, where the meaning of a reason leaves that open. */
const hints: Partial<Record<Reason, string>> = {
  account_not_found: '`cellkeep account list --deleted` shows them all.',
  already_bootstrapped: '`cellkeep keeper transfer REF` makes another account the keeper.',
  purge_not_confirmed: 'Add --confirm; nothing brings the account back then.',
  cannot_delete_keeper: 'First `cellkeep keeper transfer REF`, to somebody else.',
  cannot_delete_last_admin: 'First `cellkeep role assign REF admin`, for somebody else.',
  cannot_revoke_last_admin: 'First `cellkeep role assign REF admin`, for somebody else.',
  last_actor: '`cellkeep account delete REF` ends the whole account.',
  actor_limit: 'Remove one, or raise CELLKEEP_MAX_ACTORS.',
  actor_required: 'Say which one acts:',
  role_grant_path_not_allowed:
    'The role must be declared in the config file with the grant path `admin`; `cellkeep keeper transfer` moves keeper.',
}

/** A refusal for standard error: its reason, what that means, and what came with it. */
export function refusalText({ data }: ServiceError): string {
  const {
    reason,
    issues = [],
    available = [],
  } = data as {
    reason: Reason
    issues?: Issue[]
    available?: { id: string; name: string }[]
  }
  const meaning = (catalogue as Record<string, { doc: string }>)[reason]?.doc
  const hint = hints[reason]
  const lines = [
    meaning === undefined ? reason : `${reason}: ${meaning}`,
    ...(hint === undefined ? [] : [`  ${hint}`]),
    ...issues.map(({ path, message }) => `  ${path.join('.') || 'input'}: ${message}`),
    ...available.map(({ id, name }) => `  --actor ${id}  ${name}`),
  ]
  return `${lines.map(printable).join('\n')}\n`
}
