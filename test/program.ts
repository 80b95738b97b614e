import { copyFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'vite'

const root = join(import.meta.dirname, '..')
const place = join(root, 'node_modules/.cache/program')

/**
 * Bundles the sources as one file for the processes that tests start: reading three hundred takes half of a start. It
 * lies as in the published package, whose first file it runs. Returns that file.
 */
export async function bundleProgram(): Promise<string> {
  await build({
    root,
    configFile: false,
    logLevel: 'error',
    publicDir: false,
    // Sources find data, migrations and threads from where they are themselves.
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
    // It has a file for each of fifty languages.
    ssr: { noExternal: ['zod'] },
    build: {
      ssr: 'src/cli/main.ts',
      outDir: join(place, 'dist/cli'),
      emptyOutDir: true,
      minify: false,
      target: 'node22',
      rolldownOptions: { output: { entryFileNames: 'main.js' } },
    },
  })
  const first = join(place, 'bin/cellkeep.js')
  await mkdir(join(place, 'bin'), { recursive: true })
  await copyFile(join(root, 'bin/cellkeep.js'), first)
  return first
}
