import { operation } from '../core/operation.ts'
import { StartError } from '../errors.ts'
import { tokenUnwritable } from '../files/unwritable.ts'
import { takeBootstrapLock } from './lock.ts'

/** Leaves no audit row. A running server accepts the new token at once. */
export const resetBootstrapToken = operation({
  doc: 'Write a new bootstrap token into its file. Refused once a keeper exists.',
  errors: ['already_bootstrapped'],
  async handler(_input, { app }) {
    const { path, mode } = app.bootstrap
    if (mode !== 'live')
      throw new StartError(
        'bootstrap_disabled',
        'The bootstrap is off. To allow it, set CELLKEEP_BOOTSTRAP=live.',
        1,
      )
    // Under the bootstrap lock: a concurrent bootstrap either commits first or compares with the new token.
    await app.db.transaction(async (tx) => {
      await takeBootstrapLock(tx)
      await app.bootstrap.renew().catch(tokenUnwritable(path, 'Let this user write to its directory.'))
    })
    return { path }
  },
  command: {
    name: 'bootstrap-token reset',
    details: 'Prints the path of the file.',
    phrase: ({ path }) => path,
  },
})
