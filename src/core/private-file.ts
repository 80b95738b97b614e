import { randomBytes } from 'node:crypto'
import { constants, link, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

const maxBytes = 4096

/** `missing` tells "no such file" from a file that may not be used; `problem` continues the path. */
export type PrivateFile = { content: string } | { problem: string; missing?: true }

/**
 * Reads a file that only its owner may read (contract 2, section 9): regular, no symlink, mode 0600 or
 * 0400, at most 4 KiB, trimmed, not empty. Anything else is a `problem`; never throws.
 */
export async function readPrivateFile(path: string): Promise<PrivateFile> {
  try {
    // O_NONBLOCK: opening a pipe must not wait for somebody to write.
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const { size, mode } = await file.stat()
      const type = mode & constants.S_IFMT
      const rights = mode & 0o7777
      if (type !== constants.S_IFREG) return { problem: 'is not a regular file' }
      if (rights !== 0o600 && rights !== 0o400) {
        return { problem: `has mode ${rights.toString(8).padStart(4, '0')}; it must be 0600 or 0400` }
      }
      if (size > maxBytes) return { problem: 'is larger than 4 KiB' }
      const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0)
      const content = buffer.toString('utf8', 0, bytesRead).trim()
      return content === '' ? { problem: 'is empty' } : { content }
    } finally {
      await file.close()
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return { problem: 'does not exist', missing: true }
    return { problem: code === 'ELOOP' ? 'is a symbolic link' : `cannot be read (${code})` }
  }
}

/**
 * Makes a file of mode 0600, and its directory with 0700 when missing. False when there is one already,
 * which stays as it is; whoever else looks sees the whole content or no file. Rejects with the system's error.
 */
export async function createPrivateFile(path: string, content: string): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await writeExclusively(draft, content)
    await link(draft, path)
    await syncDirectory(dirname(path))
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

/** Puts a file of mode 0600 in place of any other, at one stroke: who reads meanwhile sees the old or the new one. */
export async function replacePrivateFile(path: string, content: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await writeExclusively(draft, content)
    await rename(draft, path)
    await syncDirectory(dirname(path))
  } finally {
    await rm(draft, { force: true })
  }
}

/** What file systems without hard links answer. */
const noHardLinks = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

async function writeExclusively(path: string, content: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    // The umask may have taken more than the mode says.
    await file.chmod(0o600)
    await file.writeFile(content)
    await file.sync()
  } catch (error) {
    // Half a secret must not be taken for one later.
    await rm(path, { force: true })
    throw error
  } finally {
    await file.close()
  }
}

/** The name is lasting only when its directory is: after a power cut the file must still be there. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path)
  await directory.sync().finally(() => directory.close())
}
