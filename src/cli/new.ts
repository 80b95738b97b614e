import { cp, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { basename, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { StartError } from '../errors.ts'
import { version } from '../wire/version.ts'
import { type Command, command } from './command.ts'

const template = fileURLToPath(new URL('../../templates/project', import.meta.url))

export const newProject: Command = command({
  name: 'new',
  usage: 'DIR',
  summary: 'Make a project that runs: a role, a method and a hook of its own, with their tests.',
  details:
    'DIR must not exist, or be empty.\n\nExample:\n  cellkeep new ./notes && cd notes && npm install && npm start',
  args: 1,
  async run({ args: [dir = ''], io, out }) {
    const path = resolve(io.cwd, dir)
    await mkdir(path, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
      throw new StartError('cannot_write', `${path} cannot be made (${error.code}): name a new directory.`, 1)
    })
    if ((await readdir(path)).length > 0)
      throw new StartError('not_empty', `${path} is not empty: name a new directory.`, 1)
    await cp(template, path, { recursive: true })
    // npm leaves out files of these names when it packs the template.
    await rename(join(path, 'gitignore'), join(path, '.gitignore'))
    const manifest = join(path, 'package.json')
    const name =
      basename(path)
        .toLowerCase()
        .replace(/[^a-z0-9._-]+/g, '-')
        .replace(/^[._-]+/, '') || 'app'
    const text = await readFile(manifest, 'utf8')
    await writeFile(manifest, text.replaceAll('__name__', name).replaceAll('__version__', version))
    const cd = relative(io.cwd, path) || '.'
    out.result(
      { path, name },
      `${path} is made. Go on with:\n\n  cd ${cd}\n  npm install\n  npm start          # and npm test`,
    )
  },
})
