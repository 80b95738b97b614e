import { z } from 'zod'
import { onlyVia } from '../../core/operate.ts'
import { account, operation } from '../../core/operation.ts'
import { Uuid } from '../../wire/types.ts'
import { lockLiveAccount } from '../locks.ts'
import { clearLogins, loginBuckets } from '../login-buckets.ts'

export const unlockAccount = operation({
  doc: 'Forget the failed logins of an account, so that it can sign in at once.',
  input: z.strictObject({ account_id: Uuid }),
  event: 'account_update',
  errors: ['account_not_found'],
  ownTransactions: true,
  async handler({ account_id }, { app, operator, operate, fail }): Promise<void> {
    const keys = await operate(async ({ db, audit, detail }) => {
      const account = await lockLiveAccount(db, account_id, fail)
      audit('account_update', { change: 'unlock', ...onlyVia(detail) }, { target_account_id: account_id })
      return await loginBuckets(db, account)
    })
    const clear = (): Promise<void> => clearLogins(app, keys)
    // Awaited where possible: a failure after the caller's commit would be reported to nobody.
    if (operator.within) operator.within.afterCommit(clear)
    else await clear()
  },
  command: {
    name: 'account unlock',
    args: { account_id: account },
    details:
      'This applies to every server now connected to the database, whether it counts logins in memory or in the\ndatabase.',
    done: { unlocked: true },
    phrase: (_, { who }) => `${who} is unlocked and can sign in again.`,
  },
})
