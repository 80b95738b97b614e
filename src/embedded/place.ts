import { constants } from 'node:fs'
import { access, mkdir, open, realpath, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { StartError } from '../errors.ts'
import { directoryRisk, makeDirectory, type Risk } from '../files/safe-directory.ts'
import { socketDirectory } from './socket.ts'
import { barrierTo, type DatabaseUser, databaseUser } from './user.ts'

/** The real paths of an embedded database, and the user that it runs as. */
export type Place = {
  dataDir: string
  db: string
  socketDir: string
  logFile: string
  libDir: string
  user: DatabaseUser | undefined
}

type PlaceOptions = {
  dataDir: string
  /** True if the operator chose no directory: a root process may then use `machineDir` instead. */
  dataDirIsDefault?: boolean
  /** `CELLKEEP_POSTGRES_USER`. */
  postgresUser?: string | undefined
  onNotice?: ((text: string) => void) | undefined
  machineDir?: string
}

/**
 * Makes the data dir and the socket directory. Throws a StartError (78) if the data dir cannot be made or
 * written, is writable by others, or is out of reach of the user that PostgreSQL runs as.
 */
export async function preparePlace(options: PlaceOptions): Promise<Place> {
  const { wanted, user } = await choosePlace(options)
  const dataDir = await makeDataDir(wanted, user).catch((error) => {
    throw error instanceof StartError ? error : unusable(wanted, (error as Error).message)
  })
  const socketDir = await socketDirectory(dataDir, user).catch((error) => {
    throw unusable(dataDir, (error as Error).message)
  })
  return {
    dataDir,
    db: join(dataDir, 'db'),
    socketDir,
    logFile: join(dataDir, 'db.log'),
    libDir: join(dataDir, 'lib'),
    user,
  }
}

/**
 * The data dir that would be used, unless it certainly holds no database: one that may not be entered may hold one.
 * Makes nothing.
 */
export async function existingDataDir(options: PlaceOptions): Promise<string | undefined> {
  const { wanted } = await choosePlace(options)
  const mayHoldOne = await stat(join(wanted, 'db')).then(
    () => true,
    ({ code }: NodeJS.ErrnoException) => code !== 'ENOENT' && code !== 'ENOTDIR',
  )
  return mayHoldOne ? wanted : undefined
}

async function choosePlace(
  options: PlaceOptions,
): Promise<{ wanted: string; user: DatabaseUser | undefined }> {
  const wanted = resolve(options.dataDir)
  const user = await databaseUser(join(wanted, 'db'), options.postgresUser)
  if (user !== undefined && options.dataDirIsDefault) {
    const barrier = await barrierTo(dirname(wanted), user)
    const isUsed = await stat(join(wanted, 'db')).catch(() => undefined)
    if (barrier !== undefined && !isUsed) {
      const dataDir = options.machineDir ?? '/var/lib/cellkeep'
      options.onNotice?.(
        `The data directory is ${dataDir}, because PostgreSQL runs as the user ${user.name}, who cannot enter ${barrier}`,
      )
      return choosePlace({ ...options, dataDir, dataDirIsDefault: false })
    }
  }
  return { wanted, user }
}

async function makeDataDir(wanted: string, user: DatabaseUser | undefined): Promise<string> {
  const mode = user === undefined ? 0o700 : 0o711
  await makeDirectory(dirname(wanted))
  const made = await mkdir(wanted, { mode }).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
      return false
    },
  )
  const dataDir = await realpath(wanted)
  // Checked and changed through one handle, so that nobody can swap the directory in between.
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
  const handle = await open(dataDir, flags).catch((error) => barred(dataDir, error))
  try {
    const found = await handle.stat()
    const risk = directoryRisk(dataDir, found)
    if (risk) throw unsafeDataDir(dataDir, risk)
    // The umask reduced the mode given to `mkdir`.
    if (made) await handle.chmod(mode)
    // Root made it beforehand: let PostgreSQL's user pass. Execute bits do not allow listing.
    else if (user !== undefined && (found.mode & 0o011) !== 0o011)
      await handle.chmod((found.mode & 0o7777) | 0o011)
  } finally {
    await handle.close()
  }
  await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK).catch((error) =>
    barred(dataDir, error),
  )
  if (user === undefined) return dataDir
  const barrier = await barrierTo(dataDir, user)
  if (barrier === undefined) return dataDir
  throw unusable(
    dataDir,
    `PostgreSQL runs as the user ${user.name}, who cannot enter ${barrier}. Run \`chmod o+x ${barrier}\`, or start Cellkeep as an ordinary user`,
  )
}

/** Often a volume that still belongs to root. */
async function barred(dataDir: string, error: NodeJS.ErrnoException): Promise<never> {
  if (error.code !== 'EACCES') throw error
  const own = process.geteuid?.()
  throw unusable(
    dataDir,
    `it belongs to uid ${(await stat(dataDir)).uid}, and uid ${own} may not write there. Run Cellkeep as that user or, if no other uses the directory, run \`chown ${own} ${dataDir}\``,
  )
}

const unsafeDataDir = (dataDir: string, { what, remedy }: Risk): StartError =>
  new StartError(
    'data_dir_unsafe',
    `The data directory ${dataDir} ${what}. Anyone who can write there can become the keeper. ${remedy}`,
    78,
  )

const unusable = (dataDir: string, why: string): StartError =>
  new StartError(
    'data_dir_unusable',
    `The data directory ${dataDir} cannot be used: ${why}. To use another one, set CELLKEEP_DATA_DIR.`,
    78,
  )
