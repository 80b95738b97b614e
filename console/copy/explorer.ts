import type { AuthSpec } from '../../src/core/method.ts'

/** The roles of which a method needs one; empty: none. */
export const rolesNeeded = ({ roles = [] }: AuthSpec): string =>
  roles
    .map((one) => (typeof one === 'string' ? one : `${one.role} in the ${one.scope_kind ?? 'place'}`))
    .join(' or ')

/** The API explorer. */
export const explorer = {
  title: 'API',
  about: 'Every method of this server. Calls run as you.',
  methods: 'Methods',
  find: 'Find a method',
  none: 'No method has this in its name.',
  choose: 'Choose a method.',
  required: (name: string) => `${name} (required)`,
  left_out: 'omitted',
  as_json: 'As JSON.',
  send_null: (name: string) => `Send null as ${name}`,
  unreadable: 'This is neither a number nor valid JSON.',
  acting: 'acting',
  call: 'Call',
  changes: 'changes data',
  reads: 'reads',
  who: (auth: AuthSpec): string =>
    rolesNeeded(auth) || (auth.account === 'required' ? 'anyone signed in' : 'anyone'),
  change_question: 'This changes real data. Continue?',
  change_about: (name: string, method: string) => `${method} is called as ${name}.`,
  answered: (ms: number) => `Answered in ${ms} ms`,
  not_called: 'Not called yet.',
  parts: 'Parts of the method',
  tabs: { '': 'Result', refusals: 'Refusals', schema: 'Schema' },
  copy_curl: 'Copy as curl',
  copy_typescript: 'Copy as TypeScript',
  copy_json: 'Copy as JSON',
}
