import { statfsSync } from 'node:fs'

/** Files in memory, on Linux. */
const memory = '/dev/shm'
/** Many times what all databases of a run take at once: a container may have 64 MB, or little memory at all. */
const roomBytes = 4 * 2 ** 30

/**
 * Where a throwaway cluster lies best; undefined: in the temporary directory. A copied database is 300 files, and
 * ext4 looks for an inode the longer the more of them were deleted of late: 70 to 300 ms of a core for each copy.
 */
export function inMemory(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize >= roomBytes ? memory : undefined
  } catch {
    return undefined
  }
}
