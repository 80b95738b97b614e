import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { blocksOf } from './doc-blocks.ts'
import { environment, type Place, withServer } from './example-runs.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const run = promisify(execFile)

/**
 * Follows docs/tutorial.md word by word with the package of the tarball, below the directory of `place`: writes its files, runs its
 * commands, and finds what is in examples/wiki.
 */
export async function followTutorial(place: Place, tarball: string): Promise<void> {
  const directory = join(place.directory, 'wiki')
  await run(place.node, [join(root, 'bin/cellkeep.js'), 'new', directory])
  await installPackage(directory, tarball)
  const blocks = blocksOf('docs/tutorial.md')
  const first = blocks.findIndex(({ text }) => text.includes('npx cellkeep'))
  assert.ok(first > 0, 'the tutorial begins with files')
  const wiki: Place = { root: directory, node: place.node, directory }
  for (const { language, text } of blocks.slice(0, first)) {
    if (language === 'sh') {
      const said = await shell(wiki, text)
      if (text === 'npm test\n') assert.match(said, /^ℹ pass [1-9]|^# pass [1-9]/m)
      continue
    }
    const [, name = '', file = ''] = /^\/\/ ([\w.-]+\.ts)\n(.*)$/s.exec(text) ?? assert.fail(text)
    assert.equal(file, readFileSync(join(root, 'examples/wiki', name), 'utf8'), `examples/wiki/${name}`)
    await writeFile(join(directory, name), file)
  }
  const files = (path: string): string[] => globSync('*.ts', { cwd: path }).sort()
  assert.deepEqual(files(directory), files(join(root, 'examples/wiki')))
  await withServer(wiki, async (url) => {
    const said = await shell(
      wiki,
      blocks
        .slice(first)
        .map(({ text }) => text)
        .join('\n'),
      url,
    )
    assert.match(said, /Ada has to wait\.\nAda hears: .*version: 3/)
    assert.match(said, /"pages": 0.*"pages": 1.*"event_type":"page_lock"/s)
  })
}

/** Runs the embedding examples with the frameworks that they are for. */
export async function runFrameworks(place: Place, tarball: string): Promise<void> {
  const directory = join(place.directory, 'frameworks')
  await cp(join(root, 'examples/embed-frameworks'), directory, { recursive: true })
  await installPackage(directory, tarball)
  const frameworks: Place = { root: directory, node: place.node, directory }
  await shell(frameworks, 'npm run types')
  assert.match(await shell(frameworks, 'npm run check'), /express: ok.+fetch: ok/s)
}

/** Installs what the `package.json` of a directory asks for, with the tarball in place of the published package. */
async function installPackage(directory: string, tarball: string): Promise<void> {
  const path = join(directory, 'package.json')
  const manifest = JSON.parse(await readFile(path, 'utf8'))
  manifest.dependencies.cellkeep = `file:${tarball}`
  await writeFile(path, JSON.stringify(manifest))
  await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: directory })
}

async function shell(place: Place, script: string, url?: string): Promise<string> {
  const PATH = [join(place.root, 'node_modules/.bin'), environment(place).PATH].join(delimiter)
  const env = { ...environment(place), PATH, HOME: place.directory, ...(url && { CELLKEEP_URL: url }) }
  const options = { cwd: place.directory, env, timeout: 120_000 }
  const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', script], options).catch(
    ({ stdout, stderr }) => assert.fail(`${script}\n${stdout}${stderr}`),
  )
  return stdout
}
