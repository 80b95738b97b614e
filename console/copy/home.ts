/** The first page. */
export const home = {
  title: 'Home',
  start: 'Getting started',
  done: (n: number, of: number) => `${n} of ${of}`,
  hide: 'Hide this list',
  steps: {
    server: 'Set up the server',
    cell: 'Create the first cell',
    invite: 'Invite a person',
    role: 'Give a role',
    share: 'Share a cell',
  },
  waiting: 'Waiting for you',
  offers_you: 'offers you',
  review: 'Review',
  cells: 'Recent cells',
  no_cells: 'No cells yet. Those that you create, or that are shared with you, appear here.',
  events: 'Latest events',
  all: 'All',
}
