const counted = new Intl.PluralRules('en')
const numbers = new Intl.NumberFormat('en')
const lists = new Intl.ListFormat('en')

/** `1 session`, `3 sessions`. */
export const count = (n: number, one: string, many = `${one}s`): string =>
  `${numbers.format(n)} ${counted.select(n) === 'one' ? one : many}`
export const list = (all: readonly string[]): string => lists.format(all)

/** Words that every page uses. */
export const words = {
  product: 'Cellkeep',
  cancel: 'Cancel',
  close: 'Close',
  show: 'Show',
  save: 'Save',
  copy: 'Copy',
  copied: 'Copied',
  done: 'Done',
  undo: 'Undo',
  never: 'never',
  everywhere: 'everywhere',
  more_actions: 'More actions',
  loading: 'Loading',
  try_again: 'Try again',
  clear_filters: 'Clear filters',
  skip: 'Skip to the content',
  removed_actor: 'removed actor',
  copy_id: (id: string) => `Copy the id ${id}`,
  request: (id: string) => `Request ${id}`,
  again_in: (seconds: number) => `Again in ${seconds} s`,
  more_rows: 'Show more',
  more_of: (n: number, left: number) => `Show ${numbers.format(n)} more of ${numbers.format(left)}`,
  loaded: (n: number) => `${numbers.format(n)} loaded`,
}

/** The frame around every page. */
export const shell = {
  main: 'Main',
  home: 'Home',
  inbox: 'Inbox',
  cells: 'Cells',
  me: 'My account',
  people: 'People',
  roles: 'Roles',
  invites: 'Invites',
  settings: 'Settings',
  audit: 'Audit log',
  explorer: 'API',
  status: 'Status',
  more: 'More',
  administration: 'Administration',
  waiting: (n: number) => count(n, 'offer'),
  account_menu: 'Account and theme',
  act_as: (name: string) => `Act as ${name}`,
  theme: { '': 'Theme of the system', light: 'Light', dark: 'Dark' },
  sign_out: 'Sign out',
  shortcuts: 'Keyboard shortcuts',
  not_found_title: 'There is no such page',
  not_found: 'The address may be mistyped, or the page is of another version.',
  go_home: 'Go home',
  forbidden_title: 'Only for admins',
  forbidden: (name: string) => `This page needs the role admin, everywhere. You act as ${name}.`,
  unreachable_title: 'The server does not answer',
  ended_title: 'You were signed out',
  ended:
    'This session has ended: it expired, or it was ended elsewhere. What you typed stays here until you sign in as somebody else.',
  sign_in_again: 'Sign in again',
  new_version: 'A new version is running.',
  reload: 'Reload',
  offline: 'No connection. Trying again.',
  try_now: 'Now',
  too_many_windows: 'Open in too many windows: this one hears of no changes any more.',
  reconnect: 'Reconnect',
  offers_you: (name: string, role: string) => `${name} offers you the role ${role}.`,
  offer_taken_back: (role: string) => `The offer of ${role} was taken back.`,
  offer_accepted: (role: string) => `Your offer of ${role} was accepted.`,
  offer_declined: (role: string) => `Your offer of ${role} was declined.`,
  role_ended: (role: string, reason?: string) =>
    reason ? `Your role ${role} was ended: “${reason}”` : `Your role ${role} was ended.`,
}

/** What is shown once, such as the secret of a token. */
export const once = {
  shown_once: 'This is shown only once. Store it now.',
  stored: 'I have stored it',
  stored_first: 'Say first that you have stored it.',
  leave_question: 'Close without storing it?',
  leave_about: 'It cannot be shown again.',
  close_anyway: 'Close anyway',
  go_back: 'Go back',
}

/** The list that `?` opens. */
export const keys = {
  title: 'Keyboard shortcuts',
  go: 'Go to',
  rows: 'In a list: next and previous row',
  open: 'Open the row',
  search: 'Search this page',
  theme: 'Change the theme',
  help: 'This list',
  close: 'Close a dialog',
}
