import { z } from 'zod'
import { account, operation } from '../core/operation.ts'
import { accountKey, identifierKey, keyAt } from '../limits/limiters.ts'
import { knownAddresses } from '../sessions/addresses.ts'
import { Uuid } from '../wire/types.ts'
import { onlyVia } from './ending.ts'
import { fold } from './formats.ts'
import { lockLiveAccount } from './locks.ts'

/**
 * Forgets what was counted under the username, e-mail and id, from everywhere and from known addresses, in the shared
 * store or the memory of each node.
 */
export const unlockAccount = operation({
  doc: 'Forget the failed logins of an account, so that it may sign in at once.',
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
    // Not an effect where it can be waited for: nobody would hear of the failure of an effect.
    if (operator.within) operator.within.afterCommit(clear)
    else await clear()
  },
  command: {
    name: 'account unlock',
    args: { account_id: account },
    details:
      'It reaches every server that is connected to the database at this moment, whether they count in memory or\nin the database.',
    done: { unlocked: true },
    phrase: (_, { who }) => `${who} is unlocked, and may sign in again.`,
  },
})
