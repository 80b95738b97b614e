import { z } from 'zod'
import { account, operation } from '../core/operation.ts'
import { accountKey, identifierKey, keyAt } from '../limits/limiters.ts'
import { knownAddresses } from '../sessions/addresses.ts'
import { Uuid } from '../wire/types.ts'
import { onlyVia } from './ending.ts'
import { fold } from './formats.ts'
import { lockLiveAccount } from './locks.ts'

/**
 * Clears the login limits of the account: by username, by e-mail and by id, for all addresses and for each known one.
 * Works for the shared store and for the memory of each node.
 */
export const unlockAccount = operation({
  doc: 'Forget the failed logins of an account, so that it can sign in at once.',
  input: z.strictObject({ account_id: Uuid }),
  event: 'account_update',
  errors: ['account_not_found'],
  ownTransactions: true,
  async handler({ account_id }, { app, operator, operate, fail }): Promise<void> {
    const keys = await operate(async ({ db, audit, detail }) => {
      const { username, email } = await lockLiveAccount(db, account_id, fail)
      const names = email === null ? [username] : [username, fold(email)]
      audit('account_update', { change: 'unlock', ...onlyVia(detail) }, { target_account_id: account_id })
      const addresses = await knownAddresses(db, account_id)
      const buckets = [...names.map(identifierKey), accountKey(account_id)]
      return buckets.flatMap((bucket) => [bucket, ...addresses.map((address) => keyAt(bucket, address))])
    })
    const clear = async (): Promise<void> => {
      await app.limiters.clear('login_account', keys)
      app.hub.publish({ notifications: [], closings: [], wroteAudit: false, cleared: keys })
    }
    // Awaited where possible: a failure after the caller's commit would be reported to nobody.
    if (operator.within) operator.within.afterCommit(clear)
    else await clear()
  },
  command: {
    name: 'account unlock',
    args: { account_id: account },
    details:
      'It reaches every server that is connected to the database now, whether it counts in memory or in the\ndatabase.',
    done: { unlocked: true },
    phrase: (_, { who }) => `${who} is unlocked, and may sign in again.`,
  },
})
