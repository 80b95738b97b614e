/** What admins can change while the server runs. */
export const settings = {
  title: 'Settings',
  signup: 'Open sign-up',
  signup_about:
    'Anyone who reaches this server can create an account. While it is closed, only invited people can.',
  open_question: 'Open sign-up?',
  open_about: 'Anyone who reaches this server can create an account, from now on.',
  open_verb: 'Open sign-up',
  opened: 'Sign-up is open.',
  closed: 'Sign-up is closed.',
  changed: (name: string | null, when: string) =>
    name ? `Changed by ${name}, ${when}.` : `Changed ${when}.`,
  rest: 'Everything else is set where the server runs, in its environment or config file: `cellkeep config` shows it.',
}
