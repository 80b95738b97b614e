import type { App } from '../core/app.ts'
import { StartError } from '../errors.ts'
import { takeBootstrapLock } from './lock.ts'

/**
 * Writes a fresh bootstrap token over any other and answers where; a running server takes it at once. It
 * leaves no audit row. Refuses with `already_bootstrapped`, `bootstrap_disabled`, `token_file_unwritable`.
 */
export async function resetBootstrapToken(app: App): Promise<{ path: string }> {
  const { path, mode } = app.bootstrap
  if (mode !== 'live')
    throw new StartError(
      'bootstrap_disabled',
      'The bootstrap is switched off; CELLKEEP_BOOTSTRAP=live allows it.',
      1,
    )
  // Under the lock row: a bootstrap that is under way either ends before, or compares with the new token.
  await app.db.transaction(async (tx) => {
    await takeBootstrapLock(tx)
    await app.bootstrap.renew().catch((error: Error) => {
      throw new StartError('token_file_unwritable', `The token file cannot be written: ${error.message}`, 1)
    })
  })
  return { path }
}
