import { randomBytes } from 'node:crypto'
import { constants, link, open, rename, rm } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { makeDirectory, type OpenDirectory, openDirectory, ownerRisk, unsafe } from './safe-directory.ts'

const bytesMax = 4096

/**
 * `problem` is a phrase that follows the path. `missing` tells "no such file" from a file that may not be used.
 * `remedy` is a sentence, given if somebody else may have created the file.
 */
export type PrivateFile = { content: string } | { problem: string; missing?: true; remedy?: string }

/**
 * Reads and trims a file that only its owner may read and that nobody else can have put there: a regular file, no
 * symlink, mode 0600 or 0400, at most `max` bytes, not empty; file and directory belong to us or to root. Anything
 * else is a `problem`; never throws.
 */
export async function readPrivateFile(path: string, max = bytesMax): Promise<PrivateFile> {
  try {
    const directory = await openDirectory(dirname(path))
    try {
      return await readWithin(directory, path, max)
    } finally {
      await directory.close()
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return { problem: 'does not exist', missing: true }
    return { problem: code === 'ELOOP' ? 'is a symbolic link' : `cannot be read (${code})` }
  }
}

async function readWithin({ risk, within }: OpenDirectory, path: string, max: number): Promise<PrivateFile> {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const file = await open(within(basename(path)), flags)
  try {
    // Checks the open file, so it cannot be replaced between check and read.
    const stats = await file.stat()
    const { size, mode } = stats
    const rights = mode & 0o7777
    const foreign = ownerRisk(path, stats)
    if (risk) return { problem: `is in ${dirname(path)}, which ${risk.what}`, remedy: risk.remedy }
    if (foreign) return { problem: foreign.what, remedy: foreign.remedy }
    if ((mode & constants.S_IFMT) !== constants.S_IFREG) return { problem: 'is not a regular file' }
    if (rights !== 0o600 && rights !== 0o400) {
      return { problem: `has mode ${rights.toString(8).padStart(4, '0')}; it must be 0600 or 0400` }
    }
    if (size > max) return { problem: `is larger than ${max / 1024} KiB` }
    const { buffer, bytesRead } = await file.read(Buffer.alloc(max), 0, max, 0)
    const content = buffer.toString('utf8', 0, bytesRead).trim()
    return content === '' ? { problem: 'is empty' } : { content }
  } finally {
    await file.close()
  }
}

/**
 * Creates a file with mode 0600, and its directory with 0700 if missing. Resolves to false and changes nothing if
 * the file exists. Other readers see the whole content or no file. Rejects with the error of the system, or with a
 * StartError if others could replace the file.
 */
export async function createPrivateFile(path: string, content: string): Promise<boolean> {
  return await inSafeDirectory(path, (directory) => createWithin(directory, basename(path), content))
}

/** Creates or replaces a file atomically, with mode 0600: readers see the old content or the new. */
export async function replacePrivateFile(path: string, content: string): Promise<void> {
  await inSafeDirectory(path, async ({ within }) => {
    const draft = within(`${basename(path)}.${randomBytes(6).toString('hex')}`)
    try {
      await writeExclusively(draft, content)
      await rename(draft, within(basename(path)))
      await syncDirectory(within('.'))
    } finally {
      await rm(draft, { force: true })
    }
  })
}

/** Rejects with a StartError if others could replace the file. */
async function inSafeDirectory<T>(path: string, work: (directory: OpenDirectory) => Promise<T>): Promise<T> {
  await makeDirectory(dirname(path), 0o700)
  const directory = await openDirectory(dirname(path))
  try {
    if (directory.risk) throw unsafe(dirname(path), directory.risk)
    return await work(directory)
  } finally {
    await directory.close()
  }
}

async function createWithin({ within }: OpenDirectory, name: string, content: string): Promise<boolean> {
  const path = within(name)
  const draft = within(`${name}.${randomBytes(6).toString('hex')}`)
  try {
    await writeExclusively(draft, content)
    await link(draft, path)
    await syncDirectory(within('.'))
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return false
    if (!noHardLinks.has(code ?? '')) throw error
    return await writeExclusively(path, content).then(
      () => true,
      (failure: NodeJS.ErrnoException) => {
        if (failure.code === 'EEXIST') return false
        throw failure
      },
    )
  } finally {
    await rm(draft, { force: true })
  }
}

/** The error codes of file systems without hard links. */
const noHardLinks = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

async function writeExclusively(path: string, content: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    // The umask may have removed bits of the mode.
    await file.chmod(0o600)
    await file.writeFile(content)
    await file.sync()
  } catch (error) {
    // A later read must not take half a secret for a whole one.
    await rm(path, { force: true })
    throw error
  } finally {
    await file.close()
  }
}

/** Some directories cannot be synced: those that this process may only write, and those of some network file systems. */
const unsyncable = ['EACCES', 'EPERM', 'EBADF', 'EINVAL', 'EISDIR', 'ENOTSUP']

/** Syncs the name of a new file, if its directory can be synced. */
export const syncName = (path: string): Promise<void> =>
  syncDirectory(dirname(path)).catch((error: NodeJS.ErrnoException) => {
    if (!unsyncable.includes(error.code ?? '')) throw error
  })

/** A new name survives a power cut only if its directory was synced too. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path)
  await directory.sync().finally(() => directory.close())
}
