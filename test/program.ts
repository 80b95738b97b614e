import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Rollup } from 'vite'
import manifest from '../package.json' with { type: 'json' }

const root = join(import.meta.dirname, '..')
const place = join(root, 'node_modules/.cache/program')

/**
 * Bundles the sources into one file for the processes that tests start, as reading three hundred files takes half of a
 * start. The layout is that of the published package; returns the entry file.
 */
export async function bundleProgram(): Promise<string> {
  const { output } = (await build({
    root,
    configFile: false,
    logLevel: 'error',
    publicDir: false,
    // The sources locate data, migrations and threads relative to themselves.
    plugins: [
      {
        name: 'own-urls',
        enforce: 'pre',
        transform: (code, id) =>
          id.startsWith(join(root, 'src')) && code.includes('import.meta.url')
            ? code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href))
            : undefined,
      },
    ],
    // Finding and reading those files too would take an eighth of a start. Optional packages may be missing, as installed.
    ssr: { noExternal: true, external: ['@node-rs/argon2', ...Object.keys(manifest.optionalDependencies)] },
    build: {
      ssr: 'src/cli/main.ts',
      write: false,
      minify: false,
      target: 'node22',
      rolldownOptions: { output: { entryFileNames: 'main.js' } },
    },
  })) as Rollup.RollupOutput
  for (const file of output)
    await replace(join(place, 'dist/cli', file.fileName), file.type === 'chunk' ? file.code : file.source)
  const first = join(place, 'bin/cellkeep.js')
  await replace(first, await readFile(join(root, 'bin/cellkeep.js')))
  return first
}

/** Another run in the same clone may be starting processes from this file. */
async function replace(path: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(`${path}.${process.pid}`, content)
  await rename(`${path}.${process.pid}`, path)
}
