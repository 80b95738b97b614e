import { z } from 'zod'
import { account, operation } from '../../core/operation.ts'
import { Uuid } from '../../wire/types.ts'
import { findAccount } from './account_show.ts'

export const listSignIn = operation({
  doc: 'Show how an account signs in: password, second factor, passkeys and providers.',
  input: z.strictObject({ account_id: Uuid }),
  errors: ['account_not_found'],
  async handler({ account_id }, { app }) {
    const { sign_in } = await findAccount(app, { ref: account_id })
    return sign_in
  },
  command: {
    name: 'account factors',
    args: { account_id: account },
    phrase: ({ password, second_factor, passkeys, links }) => ({
      password: password ? 'yes' : 'none',
      'second factor': second_factor ? 'yes' : 'none',
      passkeys,
      providers: links.join(', ') || 'none',
    }),
  },
})
