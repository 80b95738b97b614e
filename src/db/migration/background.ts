import type { Log } from '../../log/log.ts'
import type { Connection } from '../servers/connection.ts'
import { type MigrateOptions, migrate } from './migrate.ts'
import { namesOf, type Step } from './steps.ts'

/** How long until a node retries steps that failed or that another node was running. */
const againMs = 30_000

/**
 * Builds indexes and fills columns while the node serves; only one node of a database does this at a time. The returned
 * function stops it; the current step is undone or continued later.
 */
export function startBackgroundSteps(
  connection: Connection,
  pending: readonly Step[],
  log: Log,
  options: Pick<MigrateOptions, 'directory'> & { everyMs?: number; isBehind?: () => boolean } = {},
): () => Promise<void> {
  const { everyMs = againMs, isBehind = () => false, ...rest } = options
  const contracts = namesOf(pending.filter(({ kind }) => kind === 'contract'))
  if (contracts.length > 0)
    log.info(
      { steps: contracts },
      'steps that remove what older versions use are pending; run `cellkeep migrate`',
    )
  const ending = new AbortController()
  const { signal } = ending
  let timer: NodeJS.Timeout | undefined
  const run = async (): Promise<void> => {
    try {
      // A newer version may use these columns differently.
      if (isBehind()) return again()
      const left = await migrate(connection, { mode: 'background', log, signal, ...rest })
      if (left.pending.every(({ kind }) => kind === 'contract')) return
    } catch (err) {
      if (!signal.aborted)
        log.error(
          { event: 'migration_failed', err },
          'a migration in the background failed and will be tried again',
        )
    }
    again()
  }
  const again = (): void => {
    if (signal.aborted) return
    timer = setTimeout(() => {
      running = run()
    }, everyMs).unref()
  }
  let running = namesOf(pending).length > contracts.length ? run() : Promise.resolve()
  return async () => {
    ending.abort()
    clearTimeout(timer)
    await running
  }
}
