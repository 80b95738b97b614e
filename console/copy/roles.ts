import { count, number } from './common.ts'

/** Roles, and who holds them. */
export const roles = {
  title: 'Roles',
  about: 'The roles that people can be given, and who holds them.',
  role: 'Role',
  description: 'What it is for',
  given: 'Given by',
  paths: { admin: 'admins', library: 'the application', cli: 'the operator' } as Record<string, string>,
  kinds: 'Kinds of place',
  self_service: 'anyone can take it',
  holders: 'Holders',
  holder: 'Holder',
  where: 'Where',
  since: 'Since',
  ends: 'Ends',
  nobody: 'Nobody holds it',
  nobody_about: 'Give it on a person’s page.',
  held: 'Holders',
  number: (n: number) => (n >= 1000 ? '1000+' : String(n)),
  give: 'Give to somebody',
  give_title: (role: string) => `Give ${role} to whom?`,
  give_find: 'Name or e-mail, begins with',
  give_none: 'Nobody has this name.',
  history: 'History',
  history_about: (n: number, isCut: boolean) =>
    isCut ? `Among the last ${number(n)} changes of roles.` : 'Among all changes of roles that are kept.',
  no_history: 'No changes of this role found.',
  whole_history: 'All changes of roles',
  counted: (n: number) => (n >= 1000 ? '1000 or more' : count(n, 'holder')),
  only_builtin:
    'Roles are declared in `cellkeep.config.ts`, in the directory that the server is started in, and appear after its next start. This one can be given everywhere or in one room:',
  example: `export default {
  scope_kinds: [{ name: 'room' }],
  roles: [{ name: 'editor', grant_paths: ['admin'], applicable_scope_kinds: ['room'] }],
}`,
  missing: 'There is no such role.',
}
