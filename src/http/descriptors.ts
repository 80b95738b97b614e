import { open } from 'node:fs/promises'
import { devNull } from 'node:os'
import { lacksDescriptors } from '../errors.ts'
import type { Log } from '../log/log.ts'

const intervalMs = 1_000

/**
 * Logs that no file descriptor is left. Node then cuts new connections without an event, so the only sign is that
 * another file cannot be opened either. Returns a function that ends the watch.
 */
export function watchDescriptors(log: Log): () => void {
  const look = async (): Promise<void> => {
    try {
      await (await open(devNull)).close()
    } catch (err) {
      if (lacksDescriptors(err))
        log.error({ event: 'descriptors_out', err }, 'no file descriptor is left; new connections are cut')
    }
  }
  const timer = setInterval(look, intervalMs).unref()
  return () => clearInterval(timer)
}
