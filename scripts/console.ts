/**
 * `npm run build:console`: builds the console and the pages for people into dist/console, each file with its
 * compressed forms, and `files.json`, from which `src/http/site.ts` serves them. `LICENSES.txt` has the licences of the
 * packages in them. `--if-older`: only if a source is newer.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import type { BuiltFile, BuiltFiles } from '../src/http/built-site.ts'
import { bundledLicences } from './licences.ts'

const root = new URL('../', import.meta.url)
const target = new URL('dist/console/', root)
const list = new URL('files.json', target)

const newest = (folder: URL): number =>
  Math.max(
    0,
    ...readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((one) => one.isFile())
      .map((one) => statSync(`${one.parentPath}/${one.name}`).mtimeMs),
  )
const isOlder = (): boolean =>
  !existsSync(list) ||
  ['console', 'src/client'].some((folder) => newest(new URL(folder, root)) > statSync(list).mtimeMs)

const built: BuiltFiles = { documents: { console: '', pages: '' }, files: { console: {}, pages: {} } }

async function build(): Promise<void> {
  // Vite takes what follows for the fragment or query of a file.
  if (/[#?]/.test(fileURLToPath(root))) {
    console.error(
      `The console cannot be built in ${fileURLToPath(root)}: rename the directory so that its path has no # or ?.`,
    )
    process.exit(1)
  }
  const vite = await import('vite')
  const licences = bundledLicences()
  rmSync(target, { recursive: true, force: true })
  for (const part of ['console', 'pages'] as const) {
    const configFile = fileURLToPath(new URL('console/vite.config.ts', root))
    const outDir = fileURLToPath(new URL(part, target))
    await vite.build({
      configFile,
      plugins: [licences.plugin],
      mode: part,
      build: { outDir },
      logLevel: 'warn',
    })
    built.documents[part] = documentOf(part)
    built.files[part] = filesOf(part)
    checkSizes(part)
  }
  writeFileSync(new URL('LICENSES.txt', target), licences.text())
  writeFileSync(list, JSON.stringify(built, null, 1))
}

/** The document. Nothing in it may be inline, because the policy of the server would block it. */
function documentOf(part: 'console' | 'pages'): string {
  const url = new URL(`${part}/${part === 'console' ? 'index' : 'pages'}.html`, target)
  const text = readFileSync(url, 'utf8')
  rmSync(url)
  const inline = /<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=/i.exec(text)
  if (inline) throw new Error(`${part}: the document has something inline: ${inline[0]}`)
  return text
}

const types: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

function filesOf(part: 'console' | 'pages'): Record<string, BuiltFile> {
  const folder = new URL(`${part}/`, target)
  const base = part === 'console' ? '/admin' : '/pages'
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => `${one.parentPath}/${one.name}`.slice(fileURLToPath(folder).length).replace(/^\//, ''))
  return Object.fromEntries(
    names.map((name) => {
      const type = types[name.slice(name.lastIndexOf('.') + 1)]
      if (!type || !/-[\w-]{8}\.\w+$/.test(name))
        throw new Error(`${part}/${name}: no hash or an unknown type`)
      return [
        `${base}/${name}`,
        { file: `${part}/${name}`, type, encodings: compress(new URL(name, folder)) },
      ]
    }),
  )
}

/** Bytes, gzipped: what the first page needs at once, what the editor of JSON may have, and any other file of code. */
const bars = {
  console: { js: 70_000, css: 12_000, editor: 125_000, page: 16_000 },
  pages: { js: 25_000, css: 12_000, editor: 0, page: 12_000 },
}

function checkSizes(part: 'console' | 'pages'): void {
  const { documents, files } = built
  const sizes = Object.entries(files[part]).map(([path, { file }]) => {
    const code = path.includes('/code-editor-') ? 'editor' : 'page'
    const suffix = path.endsWith('.css') ? 'css' : documents[part].includes(path) ? 'js' : code
    return { path, suffix, size: gzipSync(readFileSync(new URL(file, target)), { level: 9 }).length } as const
  })
  for (const suffix of ['js', 'css', 'editor', 'page'] as const) {
    const own = sizes.filter((one) => one.suffix === suffix && /\.(js|css)$/.test(one.path))
    const size =
      suffix === 'page'
        ? Math.max(0, ...own.map((one) => one.size))
        : own.reduce((sum, one) => sum + one.size, 0)
    console.log(`${part}: ${suffix} ${size} bytes gzipped of ${bars[part][suffix]}`)
    if (size > bars[part][suffix])
      throw new Error(
        `${part}: ${suffix} is too large: ${own.map(({ path, size }) => `${path} ${size}`).join(', ')}`,
      )
  }
}

/** Writes the compressed forms that are smaller. */
function compress(file: URL): ('br' | 'gz')[] {
  const bytes = readFileSync(file)
  const forms = [
    ['br', brotliCompressSync(bytes)],
    ['gz', gzipSync(bytes, { level: 9 })],
  ] as const
  return forms
    .filter(([, form]) => form.length < bytes.length)
    .map(([suffix, form]) => {
      writeFileSync(`${fileURLToPath(file)}.${suffix}`, form)
      return suffix
    })
}

if (!process.argv.includes('--if-older') || isOlder()) await build()
