import { constants, existsSync, type Stats } from 'node:fs'
import { open } from 'node:fs/promises'
import { StartError } from '../errors.ts'

/** `what` continues the path, `remedy` is a sentence. */
export type Risk = { what: string; remedy: string }

/** Why a file or directory is not only ours: whoever owns it may put into it what he likes. */
export function ownerRisk(path: string, { uid }: Stats): Risk | undefined {
  const own = process.geteuid?.()
  if (own === undefined || uid === own || uid === 0) return undefined
  return {
    what: `belongs to the user with uid ${uid}, and this process runs as uid ${own}`,
    remedy: `Run Cellkeep as that user, or \`chown ${own} ${path}\` once you know that its content is yours.`,
  }
}

/** Why others could put a file into a directory. */
export function directoryRisk(path: string, stats: Stats): Risk | undefined {
  const { mode } = stats
  const others = ownerRisk(path, stats)
  if (others || (mode & 0o022) === 0 || process.platform === 'win32') return others
  return {
    what: `may be written by others (mode ${(mode & 0o7777).toString(8).padStart(4, '0')})`,
    remedy: `Run \`chmod go-w ${path}\`, or name a directory below it, which is then made for its owner only.`,
  }
}

/** Where the system lets an open directory be named, so that files are opened in this one, whatever stands at its path by then. */
const descriptors = '/proc/self/fd'
const areNamed = existsSync(descriptors)
/** O_PATH, which Node does not name: a directory that may be passed but not listed can be opened, too. */
const openFlags = constants.O_DIRECTORY | (areNamed ? 0o10000000 : constants.O_RDONLY)

export type OpenDirectory = {
  risk: Risk | undefined
  /** The path of a file in this very directory, until it is closed. */
  within(name: string): string
  close(): Promise<void>
}

export async function openDirectory(path: string): Promise<OpenDirectory> {
  const handle = await open(path, openFlags)
  try {
    const stats = await handle.stat()
    // Where others may write but replace nothing, as in the temporary one, the owner of the file says enough.
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
  new StartError('unsafe_directory', `${path} ${what}: others could plant a secret. ${remedy}`, 78)
