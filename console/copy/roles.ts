import { count } from './common.ts'

/** Roles, and who holds them. */
export const roles = {
  title: 'Roles',
  about: 'What people can be given, and who holds it.',
  role: 'Role',
  description: 'What it is for',
  given: 'Given by',
  paths: { admin: 'admins', library: 'the application', cli: 'the operator' } as Record<string, string>,
  kinds: 'Also in one',
  self_service: 'anybody takes it',
  holders: 'Holders',
  holder: 'Holder',
  where: 'Where',
  since: 'Since',
  ends: 'Ends',
  nobody: 'Nobody holds it',
  nobody_about: 'Give it on the page of a person.',
  counted: (n: number) => (n >= 1000 ? '1000 or more' : count(n, 'holder')),
  only_builtin: 'Roles of your own are declared in `cellkeep.config.ts`:',
  example: "export default { roles: [{ name: 'editor', grant_paths: ['admin'] }] }",
  missing: 'There is no such role.',
}
