import { constants, existsSync, type Stats } from 'node:fs'
import { mkdir, open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StartError } from '../errors.ts'

/** `what` is a phrase that follows the path, `remedy` a sentence. */
export type Risk = { what: string; remedy: string }

/** The risk of a file or directory that belongs to another user, who may change its content at will. */
export function ownerRisk(path: string, { uid }: Stats): Risk | undefined {
  const own = process.geteuid?.()
  if (own === undefined || uid === own || uid === 0) return undefined
  return {
    what: `belongs to uid ${uid}, but this process runs as uid ${own}`,
    remedy: `Run Cellkeep as that user or, if you trust its content, run \`chown ${own} ${path}\`.`,
  }
}

/** The risk that others put a file into a directory. */
export function directoryRisk(path: string, stats: Stats): Risk | undefined {
  const { mode } = stats
  const others = ownerRisk(path, stats)
  if (others || (mode & 0o022) === 0 || process.platform === 'win32') return others
  return {
    what: `can be written by other users (mode ${(mode & 0o7777).toString(8).padStart(4, '0')})`,
    remedy: `Run \`chmod go-w ${path}\`, or set a directory below it, which Cellkeep then creates for its owner only.`,
  }
}

/** Open directories have names here (on Linux), so a file is opened in that very directory even if its path changes. */
const descriptors = '/proc/self/fd'
const areNamed = existsSync(descriptors)
/** 0o10000000 is O_PATH, which Node does not export: it also opens a directory that we may enter but not list. */
const openFlags = constants.O_DIRECTORY | (areNamed ? 0o10000000 : constants.O_RDONLY)

export type OpenDirectory = {
  risk: Risk | undefined
  /** The path of a file in this very directory; valid until it is closed. */
  within(name: string): string
  close(): Promise<void>
}

export async function openDirectory(path: string): Promise<OpenDirectory> {
  const handle = await open(path, openFlags)
  try {
    const stats = await handle.stat()
    // In a sticky directory such as /tmp others may create files but not replace ours: the owner of the file suffices.
    const isSticky = (stats.mode & 0o1000) !== 0
    const risk = isSticky ? ownerRisk(path, stats) : directoryRisk(path, stats)
    const place = areNamed ? `${descriptors}/${handle.fd}` : path
    return { risk, within: (name) => `${place}/${name}`, close: () => handle.close() }
  } catch (error) {
    await handle.close()
    throw error
  }
}

export const unsafe = (path: string, { what, remedy }: Risk): StartError =>
  new StartError('unsafe_directory', `${path} ${what}, so others could plant a secret. ${remedy}`, 78)

/**
 * Makes a directory and those above it. The `recursive` of `mkdir` never ends where the system denies that an existing
 * parent exists, as it does in /proc.
 */
export async function makeDirectory(path: string, mode?: number): Promise<void> {
  const found = (name: string) => stat(name).catch(() => undefined)
  try {
    await mkdir(path, mode)
  } catch (error) {
    if ((await found(path))?.isDirectory()) return
    const isOrphan = (error as NodeJS.ErrnoException).code === 'ENOENT' && !(await found(dirname(path)))
    if (!isOrphan) throw error
    await makeDirectory(dirname(path), mode)
    await makeDirectory(path, mode)
  }
}
