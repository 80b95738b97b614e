import { existsSync } from 'node:fs'
import { cp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { StartError } from '../errors.ts'
import { makeDirectory } from '../files/safe-directory.ts'
import { unwritable } from '../files/unwritable.ts'
import { version } from '../wire/version.ts'
import { type Command, command } from './shell/command.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const template = join(root, 'templates/project')

export const newProject: Command = command({
  name: 'new',
  usage: 'DIR',
  summary: 'Create a project with a role, a method and a hook of its own, and tests for them.',
  details:
    'DIR must be empty or not exist yet.\n\nExample:\n  cellkeep new ./notes && cd notes && npm install && npm start',
  args: 1,
  async run({ args: [dir = ''], io, out }) {
    const path = resolve(io.cwd, dir)
    const isNew = !existsSync(path)
    await makeDirectory(path).catch((error: NodeJS.ErrnoException) => {
      throw new StartError(
        'cannot_write',
        `${path} cannot be created (${error.code}). Name a new directory.`,
        1,
      )
    })
    if ((await readdir(path)).length > 0)
      throw new StartError('not_empty', `${path} is not empty. Name a new directory.`, 1)
    const name =
      basename(path)
        .toLowerCase()
        .replace(/[^a-z0-9._-]+/g, '-')
        .replace(/^[._-]+/, '') || 'app'
    await writeProject(path, name).catch(async (error) => {
      const made = isNew ? [path] : (await readdir(path)).map((entry) => join(path, entry))
      for (const one of made) await rm(one, { recursive: true, force: true })
      unwritable(path)(error)
    })
    const cd = relative(io.cwd, path) || '.'
    out.result(
      { path, name },
      `Created ${path}. Next:\n\n  cd ${cd}\n  npm install\n  npm start          # and npm test`,
    )
  },
})

async function writeProject(path: string, name: string): Promise<void> {
  await cp(template, path, { recursive: true })
  // npm leaves out files of these names when it packs the template.
  await rename(join(path, 'gitignore'), join(path, '.gitignore'))
  const manifest = join(path, 'package.json')
  const text = await readFile(manifest, 'utf8')
  await writeFile(manifest, text.replaceAll('__name__', name).replaceAll('__cellkeep__', await ownSpec()))
}

/** How npm gets this package: from the registry or, if a file was installed here, from the same file. */
async function ownSpec(): Promise<string> {
  const lock = await readFile(join(root, '..', '.package-lock.json'), 'utf8').catch(() => '{}')
  const resolved = JSON.parse(lock).packages?.['node_modules/cellkeep']?.resolved
  if (typeof resolved !== 'string' || !resolved.startsWith('file:')) return `^${version}`
  const file = resolve(root, '../..', resolved.slice('file:'.length))
  return existsSync(file) ? `file:${file}` : `^${version}`
}
