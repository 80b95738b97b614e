import { execFile } from 'node:child_process'
import { access } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { StartError } from '../errors.ts'
import { type Bundle, copyBundle, existingCopy, findBundle, linkLibraries } from './bundle.ts'
import { type DatabaseUser, runAs } from './user.ts'

/** PostgreSQL programs that have been tried and do run, and the environment they need. */
export type Binaries = { postgres: string; initdb: string; major: number; env: Record<string, string> }

export type BinariesOptions = {
  /** `CELLKEEP_POSTGRES_BIN`: a directory with `postgres` and `initdb`. If set, nothing else is tried. */
  postgresBin?: string | undefined
  /** Where links to libraries, or a copy of the programs, go if they are needed. */
  libDir: string
  user?: DatabaseUser | undefined
  /** Default: the package that npm installed for this platform. */
  bundle?: Bundle
  /** Called with the reason why a PostgreSQL of the machine is used instead of the bundled one. */
  onNotice?: ((text: string) => void) | undefined
}

const oldestMajor = 15
const otherWays =
  'set CELLKEEP_DATABASE_URL to a PostgreSQL server, or CELLKEEP_POSTGRES_BIN to a directory with `postgres` and `initdb`, version 15 or newer'

/**
 * Finds the programs of the embedded database: in the configured directory, else in the bundled package, else
 * where the machine has them. Throws a StartError (78) that says what to do if none runs here (Windows, Alpine).
 */
export async function findBinaries(options: BinariesOptions): Promise<Binaries> {
  if (process.platform === 'win32')
    throw missing(`The embedded database does not run on Windows. To go on, ${otherWays.split(', or')[0]}.`)
  if (options.postgresBin !== undefined) return namedBinaries(options.postgresBin, options.user)
  let why = `no PostgreSQL is bundled for ${process.platform}-${process.arch}`
  const bundled = await bundledBinaries(options).catch((error: Error) => {
    why = `the bundled PostgreSQL does not run (${error.message})`
    return undefined
  })
  if (bundled !== undefined) return bundled
  for (const bin of machineDirectories()) {
    const found = await inspect(bin, {}, options.user).catch(() => undefined)
    if (found === undefined || found.major < oldestMajor) continue
    options.onNotice?.(`Using PostgreSQL ${found.major} of ${bin}: ${why}`)
    return found
  }
  throw missing(
    `There is no PostgreSQL for the embedded database: ${why}, and there is none in the PATH or in /usr/lib/postgresql. To go on, ${otherWays}.`,
  )
}

async function namedBinaries(bin: string, user: DatabaseUser | undefined): Promise<Binaries> {
  const found = await inspect(bin, {}, user).catch((error: Error) => {
    const who = user === undefined ? '' : ` as the user ${user.name}`
    throw missing(
      `CELLKEEP_POSTGRES_BIN=${bin} cannot be used${who} (${error.message}). Set it to a directory with \`postgres\` and \`initdb\`, unset it, or set CELLKEEP_DATABASE_URL.`,
    )
  })
  if (found.major >= oldestMajor) return found
  throw missing(
    `CELLKEEP_POSTGRES_BIN=${bin} holds PostgreSQL ${found.major}, which is too old: ${otherWays}.`,
  )
}

async function bundledBinaries({ libDir, user, ...options }: BinariesOptions): Promise<Binaries | undefined> {
  const bundle = options.bundle ?? (await findBundle())
  if (bundle === undefined) return undefined
  const variable = process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH'
  const from = async (native: string): Promise<Binaries> => {
    await linkLibraries(native, libDir)
    // The package's directory too: a library found through a link searches for its dependencies beside the link.
    return inspect(join(native, 'bin'), { [variable]: `${libDir}:${join(native, 'lib')}` }, user)
  }
  const copy = await existingCopy(bundle, libDir)
  if (copy !== undefined) return from(copy)
  return from(bundle.native).catch(async (error: NodeJS.ErrnoException) => {
    // Below a private directory, or installed without execute bits: run a copy instead.
    if (error.code !== 'EACCES') throw error
    return from(await copyBundle(bundle, libDir))
  })
}

/** Runs both programs as the user who will run them later: more reliable than checking modes and paths. */
async function inspect(
  bin: string,
  extra: Record<string, string>,
  user: DatabaseUser | undefined,
): Promise<Binaries> {
  const env = { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC', ...extra }
  const postgres = join(bin, 'postgres')
  const initdb = join(bin, 'initdb')
  await access(postgres)
  await access(initdb)
  const [{ stdout }] = await Promise.all([runProgram(postgres, env, user), runProgram(initdb, env, user)])
  const major = Number(/\(PostgreSQL\) (\d+)/.exec(stdout)?.[1])
  if (!Number.isInteger(major)) throw new Error(`${postgres} is not a PostgreSQL server`)
  return { postgres, initdb, major, env }
}

const run = promisify(execFile)

async function runProgram(file: string, env: Record<string, string>, user: DatabaseUser | undefined) {
  try {
    return await run(file, ['--version'], { env, ...runAs(user), timeout: 10_000 })
  } catch (error) {
    const { code, stderr, syscall } = error as NodeJS.ErrnoException & { stderr?: string }
    const why = syscall === undefined ? (stderr?.trim().split('\n')[0] ?? `it ended with ${code}`) : code
    throw Object.assign(new Error(`${file}: ${why}`), { code })
  }
}

/** Where Debian's packages put the programs, newest first, then the PATH, where other systems link them. */
const machineDirectories = (): string[] => [
  ...[18, 17, 16, 15].map((major) => `/usr/lib/postgresql/${major}/bin`),
  ...(process.env.PATH ?? '').split(delimiter).filter((dir) => dir.startsWith('/')),
]

const missing = (message: string): StartError => new StartError('postgres_binaries_missing', message, 78)
