import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cloneDatabase, startCluster, toUrl } from '../src/testing/cluster.ts'
import { environment, type Place } from './example-runs.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * One code block of a page; `// name.ts` on its first line is the name by which the others import it. A comment `<!--
 * setup … -->` right above it holds lines that the reader takes for granted, `<!-- shown only: why -->` one that cannot
 * run on its own.
 */
type Block = { page: string; line: number; language: string; text: string; name: string }

const form = /(?:<!-- (setup|shown only)(?:\n|: )(.*?)-->\n+)?^```(ts|js|sh)\n(.*?)^```$/gms

export function blocksOf(page: string): Block[] {
  const markdown = readFileSync(join(root, page), 'utf8')
  return [...markdown.matchAll(form)].flatMap(
    ({ index, 1: kind, 2: setup = '', 3: language = '', 4: text = '' }) => {
      if (kind === 'shown only') return []
      const line = markdown.slice(0, index).split('\n').length
      const [, own] = /^\/\/ (\w+)\.ts$/m.exec(text.split('\n', 1)[0] ?? '') ?? []
      const name = own ?? `${page.replace(/\W+/g, '-')}-${line}`
      return [{ page, line, language, text: kind ? `${setup}${text}` : text, name }]
    },
  )
}

/** `docs/api.md` is generated from the declarations, and holds no programs; scripts/example-projects.ts follows the tutorial. */
const pages = [
  'README.md',
  ...globSync('docs/*.md', { cwd: root, exclude: ['docs/api.md', 'docs/tutorial.md'] }).sort(),
]
/** A block that still runs after this long without an error listens or follows, as it should. */
const longEnoughMs = 6_000

/** Writes the blocks of all pages as modules of the project; `checkTypes` then compiles them with the rest. */
export async function writeBlocks(project: string): Promise<void> {
  await mkdir(join(project, 'blocks'), { recursive: true })
  for (const { language, text, name } of pages.flatMap(blocksOf))
    if (language !== 'sh')
      await writeFile(
        join(project, 'blocks', `${name}.${language === 'ts' ? 'ts' : 'mjs'}`),
        `${text}\nexport {}\n`,
      )
}

/**
 * Runs every block, page by page and in order, against the server at `url`, whose directory is that of `place`: shell
 * blocks there, modules in the project. Resolves to their number.
 */
export async function runBlocks(place: Place, url: string): Promise<number> {
  const cluster = await startCluster()
  const blocks = pages.flatMap(blocksOf).filter(({ language }) => language !== 'js')
  const failures: string[] = []
  try {
    for (const block of blocks) {
      const text = block.text.replaceAll(/http:\/\/(127\.0\.0\.1|localhost):4040/g, url)
      const said =
        block.language === 'sh' ? await runShell(place, text, url) : await runModule(place, block, text)
      if (said !== undefined) failures.push(`${block.page}:${block.line}\n${said}`)
    }
  } finally {
    await cluster.stop()
  }
  assert.deepEqual(failures, [], failures.join('\n\n'))
  return blocks.length

  async function runModule(place: Place, { name }: Block, text: string): Promise<string | undefined> {
    const file = join(place.root, 'blocks', `${name}.run.ts`)
    const database = await cloneDatabase(cluster.connection, 'template0')
    const databaseUrl = toUrl(database.connection)
    await writeFile(file, text.replaceAll('postgres://localhost/app', databaseUrl))
    const env = {
      ...environment(place),
      DATABASE_URL: databaseUrl,
      COOKIE_KEY: 'k'.repeat(43),
      CELLKEEP_URL: url,
    }
    return await outcome(place.node, [file], { cwd: place.root, env })
  }
}

/** `npx` finds the package of the project only from within it. */
async function runShell(place: Place, text: string, url: string): Promise<string | undefined> {
  const PATH = [join(place.root, 'node_modules/.bin'), environment(place).PATH].join(delimiter)
  const env = { ...environment(place), PATH, CELLKEEP_URL: url, HOME: place.directory }
  const script = text
    .replaceAll('npx cellkeep', 'cellkeep')
    .replaceAll(/\bcurl\b/g, 'curl -sS --fail-with-body')
  return await outcome('bash', ['-euo', 'pipefail', '-c', script], { cwd: place.directory, env })
}

/** Undefined for success; what was printed for a failure. */
async function outcome(
  command: string,
  args: string[],
  options: { cwd: string; env: NodeJS.ProcessEnv },
): Promise<string | undefined> {
  try {
    await promisify(execFile)(command, args, { ...options, timeout: longEnoughMs })
    return undefined
  } catch (error) {
    const { killed, stdout, stderr } = error as { killed: boolean; stdout: string; stderr: string }
    return killed && stderr === '' ? undefined : `${stdout}${stderr}`
  }
}
