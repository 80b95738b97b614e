import { query } from '../core/declare.ts'
import { SessionAccount } from './accounts.ts'

export const account_verify = query({
  doc: 'The account behind the presented credential.',
  auth: { account: 'required', actor: 'none' },
  before_enrolment: true,
  output: SessionAccount,
  // This request has already read the account together with the credential.
  handler: async (_input, { account }) => account,
})
