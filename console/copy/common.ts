const counted = new Intl.PluralRules('en')
const numbers = new Intl.NumberFormat('en')
const lists = new Intl.ListFormat('en')

/** `1 session`, `3 sessions`. */
export const count = (n: number, one: string, many = `${one}s`): string =>
  `${numbers.format(n)} ${counted.select(n) === 'one' ? one : many}`
/** The same for counts of the server, which end at 1000. */
export const most = (n: number, one: string): string =>
  n >= 1000 ? `${numbers.format(n)} ${one}s or more` : count(n, one)
export const number = (n: number): string => numbers.format(n)
export const list = (all: readonly string[]): string => lists.format(all)

/** Words that every page uses. */
export const words = {
  product: 'Cellkeep',
  cancel: 'Cancel',
  close: 'Close',
  unsaved_question: 'Leave without saving? Your changes will be lost.',
  show: 'Show',
  save: 'Save',
  copy: 'Copy',
  copied: 'Copied',
  not_copied: 'The browser does not allow copying here. Select the text and copy it yourself.',
  done: 'Done',
  undo: 'Undo',
  never: 'never',
  everywhere: 'everywhere',
  more_actions: 'More actions',
  loading: 'Loading',
  try_again: 'Try again',
  clear_filters: 'Clear filters',
  skip: 'Skip to content',
  removed_actor: 'removed actor',
  find_person: 'Start typing a name',
  paste_actor: 'Paste the id of an actor',
  no_person: 'Nobody has a name that begins with this.',
  no_person_near: 'Nobody at the places of your roles has a name that begins with this.',
  no_search: 'You cannot search for names. Paste the id of an actor.',
  remove: (what: string) => `Remove ${what}`,
  copy_id: (id: string) => `Copy the id ${id}`,
  request: (id: string) => `Request ${id}`,
  again_in: (seconds: number) =>
    `Again in ${seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`}`,
  more_rows: 'Show more',
  look_back: 'Look further back',
  more_of: (n: number, left: number) => `Show ${numbers.format(n)} more of ${numbers.format(left)}`,
  counting: 'Counting what this affects',
  type_name: (name: string) => `Type ${name} to confirm`,
  loaded: (n: number) => `${numbers.format(n)} loaded`,
  too_long: (n: number, max: number) =>
    `${numbers.format(n)} characters; the limit is ${numbers.format(max)}.`,
}

const stay = (n: number): string => (n === 1 ? 'stays' : 'stay')
/** Things that exist, and what they do together: `1 session and 2 tokens end`; empty if there are none. */
const together = (
  things: readonly (readonly [n: number, one: string])[],
  does: string,
  do_: string,
): string => {
  const some = things.filter(([n]) => n > 0)
  const total = some.reduce((sum, [n]) => sum + n, 0)
  return total === 0 ? '' : `${list(some.map(([n, one]) => most(n, one)))} ${total === 1 ? does : do_}`
}
const sentences = (...all: string[]): string =>
  all
    .filter(Boolean)
    .map((one) => `${one}.`)
    .join(' ')

type Credentials = { sessions: number; tokens: number }
const credentials = ({ sessions, tokens }: Credentials): string =>
  together(
    [
      [sessions, 'session'],
      [tokens, 'token'],
    ],
    'ends now',
    'end now',
  )

/** What the deletion of an account, one's own or another's, ends and leaves; zero counts are left out. */
export const deletion = {
  counted: (
    name: string,
    n: { sessions: number; tokens: number; role_grants: number; offers: number; cells: number },
  ) =>
    sentences(
      credentials(n),
      [
        together([[n.role_grants, 'role']], 'stops working', 'stop working'),
        together([[n.offers, 'offer']], 'stays', 'stay'),
      ]
        .filter(Boolean)
        .join(', '),
      n.cells > 0 ? `${most(n.cells, 'cell')} ${stay(n.cells)}, with ${name} as owner` : '',
      'The name stays taken',
      'An admin can undelete the account; sessions and tokens do not come back',
    ),
}
/** Ending all sessions, or all tokens, of somebody. */
export const endings = {
  sessions: (n: number) =>
    sentences(
      together([[n, 'session']], 'ends within seconds', 'end within seconds') || 'There are no sessions',
      'Tokens keep working',
    ),
  both: (n: Credentials) => sentences(credentials(n)),
  tokens: (n: number) =>
    n === 0
      ? 'There are no tokens.'
      : sentences(
          together([[n, 'token']], 'stops working now', 'stop working now'),
          'Scripts that use them stop',
        ),
}

/** Where a role comes from. */
export const origin = {
  title: (role: string) => `Where ${role} comes from`,
  ask: 'How it was given',
  via: {
    offer: 'accepted from an offer',
    self: 'self-assigned',
    actor: 'assigned',
    system: 'given by the server',
  },
  how: 'How',
  by: 'By',
  where: 'Where',
  since: 'Since',
  ends: 'Ends',
  state: 'State',
  states: { active: 'active', expired: 'expired', revoked: 'ended' },
  offered: 'Offered',
  message: 'Message',
  reason: 'Reason for ending it',
}

/** Times that people choose. */
export const times = {
  ends: 'Ends',
  ends_at: 'Ends at',
  days: 'Days',
  choices: {
    never: 'Never',
    '1': 'In 1 day',
    '7': 'In 7 days',
    '30': 'In 30 days',
    '90': 'In 90 days',
    '365': 'In 1 year',
    custom: 'Custom time',
  },
  is_past: 'Choose a time in the future.',
  days_wrong: 'Enter a number of days.',
}

const supersededBy = {
  sibling_accepted: 'another offer of it was accepted.',
  role_grant_revoked: 'the recipient lost that role.',
  scope_destroyed: 'its place is gone.',
  grantor_lost_authority: 'you may no longer give it.',
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
  messages: 'Messages',
  settings: 'Settings',
  audit: 'Audit log',
  explorer: 'API',
  status: 'Status',
  more: 'More',
  administration: 'Administration',
  waiting: (n: number) => count(n, 'offer'),
  account_menu: 'Account and theme',
  act_as: (name: string) => `Act as ${name}`,
  theme: { '': 'System theme', light: 'Light', dark: 'Dark' },
  density: { '': 'Comfortable rows', compact: 'Compact rows' },
  zone: { '': 'Times in the local zone', utc: 'Times in UTC' },
  sign_out: 'Sign out',
  shortcuts: 'Keyboard shortcuts',
  not_found_title: 'Page not found',
  not_found: 'The address may be mistyped, or belong to another version.',
  go_home: 'Go home',
  forbidden_title: 'Admins only',
  forbidden: (name: string) => `This page needs the role admin, everywhere. You act as ${name}.`,
  unreachable_title: 'The server does not answer',
  ended_title: 'You were signed out',
  ended:
    'Your session expired or was ended elsewhere. Unsaved text is kept here until somebody else signs in.',
  sign_in_again: 'Sign in again',
  new_version: 'A new version is running',
  reload: 'Reload',
  offline: 'No connection. Trying again.',
  try_now: 'Now',
  too_many_windows: 'Open in too many windows: this one no longer receives updates.',
  reconnect: 'Reconnect',
  offers_you: (name: string, role: string) => `${name} offers you the role ${role}.`,
  offer_taken_back: (role: string) => `The offer of ${role} was taken back.`,
  offer_accepted: (role: string) => `Your offer of ${role} was accepted.`,
  offer_declined: (role: string, reason: string | null) =>
    reason ? `Your offer of ${role} was declined: “${reason}”` : `Your offer of ${role} was declined.`,
  offer_superseded: (role: string, reason: keyof typeof supersededBy) =>
    `Your offer of ${role} has ended: ${supersededBy[reason]}`,
  role_ended: (role: string, reason?: string) =>
    reason ? `Your role ${role} was ended: “${reason}”` : `Your role ${role} was ended.`,
}

/** What is shown once, such as the secret of a token. */
export const once = {
  shown_once: 'This is shown only once. Store it now.',
  stored: 'I have stored it',
  stored_first: 'First confirm that you have stored it.',
  leave_question: 'Close without storing it?',
  leave_about: 'It cannot be shown again.',
  close_anyway: 'Close anyway',
  go_back: 'Go back',
}

/** The list that `?` opens. */
export const keys = {
  title: 'Keyboard shortcuts',
  single: 'Single keys work without Ctrl',
  go: 'Go to',
  palette: 'Go anywhere, do anything',
  submit: 'Submit a dialog',
  save: 'Review or save what you edit',
  next_row: 'In a list: next row',
  previous_row: 'In a list: previous row',
  open: 'Open the row',
  back: 'Close a dialog; back',
  search: 'Search this page',
  new: 'New, or invite',
  edit: 'Edit',
  share: 'Share',
  give_role: 'Give a role',
  pause: 'Pause or resume the live log',
  copy_id: 'Copy the id',
  lift: 'On a handle: lift the item, arrows move it, Space drops it',
  theme: 'Change the theme',
  help: 'This list',
}

/** What Ctrl K opens. */
export const palette = {
  title: 'Command palette',
  open: 'Search',
  placeholder: 'A page, an action, a cell or an id',
  placeholder_admin: 'A page, an action, a person, a cell or an id',
  page: 'page',
  action: 'on this page',
  person: 'person',
  cell: 'cell',
  id: 'Find an id',
  nothing: 'No results.',
  id_unknown: 'No cell, person or actor has this id, or you may not see it.',
  go_home: 'Go home',
}
