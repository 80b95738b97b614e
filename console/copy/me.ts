import { endings } from './common.ts'

/** One's own account. */
export const me = {
  title: 'My account',
  tabs: { profile: 'Profile', sessions: 'Sessions', tokens: 'Tokens', roles: 'Roles', security: 'Security' },
  parts: 'Parts of the account',

  username: 'Username',
  email: 'E-mail',
  no_email: 'none',
  verified: 'verified',
  not_verified: 'not verified',
  created: 'Since',
  account_id: 'Account id',
  actor: 'Acting as',
  actor_id: 'Actor id',
  operator: 'Username and e-mail are changed on the server, with `cellkeep account`.',
  change_username: 'Change username',
  username_about: 'You sign in with it. The old one stays reserved for you.',
  username_changed: 'Username changed.',
  change_name: 'Change name',
  name: 'Name',
  name_about: 'Others see it next to the username. It need not be unique.',
  name_changed: 'Name changed.',
  change_email: 'Change e-mail',
  email_about: 'A link is sent to the new address; nothing changes until it is opened.',
  email_hint: 'Leave it empty for no e-mail.',
  email_pending: (email: string) => `A link is on its way to ${email}.`,
  email_removed: 'E-mail removed.',
  verify_email: 'Send a link to verify it',
  verify_sent: 'The link is on its way.',
  verify_not_needed: 'It is already verified.',

  password_title: 'Password',
  password_about: (n: Parameters<typeof endings.both>[0] | null) =>
    `${n ? endings.both(n) : 'All sessions and tokens of the account end.'} You sign in again.`,
  change_password: 'Change password',
  set_password: 'Set a password',
  current_password: 'Current password',
  new_password: 'New password',
  password_changed: 'Password changed. Sign in with the new one.',

  delete_title: 'Delete account',
  delete_about: 'Nobody can sign in to it then. An admin can undelete it until it is purged.',
  delete: 'Delete my account',
  delete_question: (name: string) => `Delete ${name}?`,
  delete_verb: (name: string) => `Delete ${name}`,

  sessions_about: 'Browsers that are signed in to this account.',
  session: 'Session',
  since: 'Since',
  ends: 'Ends',
  of_most: (n: number, most: number | null | undefined) => (n > 0 && most ? `${n} of at most ${most}.` : ''),
  end_others: 'End the others',
  others_ended: 'All other sessions ended.',
  this_device: 'This device',
  end: 'End',
  session_ended: 'Session ended.',
  sign_out_everywhere: 'Sign out everywhere',
  sign_out_question: 'Sign out everywhere, here too?',
  sign_out_consequences: endings.sessions,

  tokens_about: 'Scripts use tokens instead of a password. A token acts for this account.',
  no_tokens: 'No tokens',
  no_tokens_about: 'A script that calls this server needs one.',
  token: 'Token',
  scope: 'May do',
  last_used: 'Last used',
  not_used: 'not yet',
  from_address: (ip: string) => `from ${ip}`,
  expired: 'expired',
  new_token: 'New token',
  revoke: 'Revoke',
  revoke_label: (name: string) => `Revoke ${name}`,
  revoke_question: (name: string) => `Revoke ${name}?`,
  revoke_used: (when: string, ip: string | null) =>
    `Last used ${when}${ip ? ` from ${ip}` : ''}. Scripts that use it stop.`,
  revoke_unused: 'It has not been used yet. Scripts that use it stop.',
  revoked: 'Token revoked.',

  token_name: 'Name',
  token_name_hint: 'What it is for, such as the name of the script.',
  token_name_missing: 'Enter a name.',
  may_do: 'May do',
  scopes: {
    read_only: { label: 'Read only', hint: 'Calls that change nothing.' },
    methods: { label: 'Chosen methods', hint: 'Only those you choose.' },
    full: { label: 'Everything', hint: 'Acts as you, everywhere.' },
  },
  find_method: 'Find a method',
  no_method_chosen: 'Choose at least one method.',
  never_warning: 'A token that never ends works until somebody revokes it.',
  ends_oldest: (most: number, name: string) =>
    `${most} of ${most} tokens: a new one ends the oldest, “${name}”.`,
  create: 'Create token',
  is_ready: (name: string) => `${name} is ready`,

  no_roles: 'No roles',
  no_roles_about: 'Roles that you are given appear here.',
  role: 'Role',
  where: 'Where',
  given_by: 'Given by',
  give_up: 'Give up',
  give_up_question: (role: string) => `Give up ${role}?`,
  give_up_about: (role: string) =>
    `You lose access to cells shared with ${role} at once. You can take it again below.`,
  given_up: (role: string) => `You gave up ${role}.`,
  takeable: 'Roles that anyone can take',
  take: 'Take',
  taken: (role: string) => `You now hold ${role}.`,
  yourself: 'yourself',
  the_server: 'the server',
}

/** `read_only`, `full` or `methods:a,b` in words. */
export function scopeText(scope: string): string {
  if (scope === 'full') return me.scopes.full.label
  if (scope === 'read_only') return me.scopes.read_only.label
  const names = scope.replace(/^methods:/, '').split(',')
  return names.length > 3 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ')
}
