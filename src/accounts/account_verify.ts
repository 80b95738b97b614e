import { query } from '../core/action.ts'
import { SessionAccount } from './accounts.ts'

export const account_verify = query({
  doc: 'The account behind the presented credential.',
  auth: { account: 'required', actor: 'none' },
  output: SessionAccount,
  // The credential was read with its account in this very request, so it is as fresh as a second read.
  handler: async (_input, { account }) => account,
})
