/** How a person signs in, as admins see and change it. */
export const personSignIn = {
  tab: 'Sign-in',
  password: 'Password',
  second_factor: 'Second factor',
  passkeys: 'Passkeys',
  providers: 'Providers',
  yes: 'yes',
  no: 'no',
  none: 'none',

  reset: 'Create a reset link',
  reset_title: (name: string) => `A new password for ${name}`,
  reset_about: (name: string) =>
    `${name} sets a new password with the link; sessions and tokens end then. It works once, for a short while.`,
  ways: {
    mailed: { label: 'Send it', hint: 'To the e-mail of the account.' },
    revealed: { label: 'Show it to me', hint: 'Only once. Make sure who is asking, and pass it on safely.' },
  },
  way: 'How',
  link_ready: 'The link is ready',
  link_sent: 'The link is on its way.',

  clear: 'Remove second factors',
  clear_question: (name: string) => `Remove the second factors of ${name}?`,
  clear_about: (name: string) =>
    `The password alone is enough then. Make sure that it is ${name} who asks. Passkeys that sign in by themselves stay.`,
  cleared: 'Second factors removed.',

  links: 'Open links',
  no_links: 'No open links.',
  link: 'For',
  purposes: {
    password_reset: 'a new password',
    email_verify: 'confirming the e-mail',
    email_change: 'a new e-mail',
    invite: 'an invite',
  },
  delivery: 'Delivered',
  deliveries: { mailed: 'by e-mail', revealed: 'by an admin' },
  made_by: 'Created by',
  nobody: 'themselves or the server',
  ends: 'Ends',
  revoke: 'Revoke',
  revoked: 'Link revoked.',
}
