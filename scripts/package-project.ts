import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('..', import.meta.url))
const run = promisify(execFile)

/** Packs into a directory and checks the contents of the tarball. Resolves to its path. */
export async function pack(directory: string): Promise<string> {
  await run('npm', ['run', 'build'], { cwd: root })
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', directory], { cwd: root })
  const [packed] = JSON.parse(stdout)
  const paths: string[] = packed.files.map((file: { path: string }) => file.path)
  const top = [...new Set(paths.map((path) => path.split('/')[0]))].sort()
  const listed = ['bin', 'data', 'dist', 'docs', 'migrations', 'package.json', 'templates']
  assert.deepEqual(top, ['CHANGELOG.md', 'LICENSE', 'README.md', ...listed])
  assert.deepEqual(
    paths.filter((path) => path.startsWith('dist/') && path.includes('.test.')),
    [],
  )
  assert.match(await readFile(join(root, 'dist/console/LICENSES.txt'), 'utf8'), /^preact .*\(MIT\)\n\n.*MIT/m)
  assert.deepEqual(await untyped(), [], 'no `any` in the declarations')
  const { stderr } = await run('npm', ['publish', '--dry-run', join(directory, packed.filename)])
  assert.doesNotMatch(stderr, /warn publish/i, 'npm would publish the manifest as it is')
  console.log(`${packed.filename}: ${paths.length} files, ${packed.size} bytes`)
  return join(directory, packed.filename)
}

/** The lines of the built declarations that contain `any`, not counting comments and texts. */
async function untyped(): Promise<string[]> {
  const files = globSync('dist/**/*.d.ts', { cwd: root })
  const found = files.map(async (file) => {
    const text = (await readFile(join(root, file), 'utf8')).replace(/\/\*[\s\S]*?\*\/|'[^'\n]*'/g, '')
    return text.split('\n').flatMap((line) => (/\bany\b/.test(line) ? [`${file}: ${line.trim()}`] : []))
  })
  assert.ok(found.length > 100, 'the package was built')
  return (await Promise.all(found)).flat()
}

/** A consumer's project: the tarball installed, the examples importing it by name, and type tests. */
export async function makeProject(project: string, tarball: string): Promise<void> {
  const { devDependencies, dependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const { typescript, '@types/node': types } = devDependencies
  await writeJson(join(project, 'package.json'), {
    private: true,
    type: 'module',
    dependencies: { cellkeep: `file:${tarball}`, zod: dependencies.zod },
    devDependencies: { '@types/node': types, typescript, [oldest]: `npm:typescript@${oldestVersion}` },
  })
  // Without install scripts, as careful users install.
  await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: project })
  await copyExamples(project)
  await cp(join(root, 'test/consumer'), join(project, 'consumer'), { recursive: true })
  await writeFile(join(project, 'types.ts'), inference)
  await writeJson(join(project, 'tsconfig.json'), {
    compilerOptions: {
      target: 'es2023',
      module: 'nodenext',
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      noEmit: true,
      skipLibCheck: false,
      allowImportingTsExtensions: true,
      types: ['node'],
    },
  })
}

/** The oldest supported compiler, under a name of its own. */
const oldest = 'typescript-oldest'
const oldestVersion = '~5.9.0'
export const compilers = ['typescript', oldest]

export async function checkTypes(project: string, compiler: string): Promise<void> {
  const tsc = join(project, 'node_modules', compiler, 'bin/tsc')
  await run(process.execPath, [tsc, '-p', project], { cwd: project }).catch(({ stdout }) =>
    assert.fail(stdout),
  )
}

const publicNames = {
  'index.ts': 'cellkeep',
  'client/client.ts': 'cellkeep/client',
  'testing/index.ts': 'cellkeep/testing',
}

async function copyExamples(project: string): Promise<void> {
  // The others are projects of their own.
  for (const name of ['standalone', 'embed'])
    await cp(join(root, 'examples', name), join(project, 'examples', name), { recursive: true })
  await cp(join(root, 'README.md'), join(project, 'README.md'))
  const files = ['standalone/import-docs.ts', 'embed/library.ts', 'embed/server.ts', 'embed/check.ts']
  for (const file of files) {
    let text = await readFile(join(project, 'examples', file), 'utf8')
    for (const [path, name] of Object.entries(publicNames))
      text = text.replaceAll(`'../../src/${path}'`, `'${name}'`)
    assert.ok(!text.includes('/src/'), `${file} imports only public names`)
    await writeFile(join(project, 'examples', file), text)
  }
}

const writeJson = (path: string, value: object): Promise<void> => writeFile(path, JSON.stringify(value))

/** Calls that must compile for a consumer, and calls that must not; `test/consumer` does the same for declarations. */
const inference = `
import { type CellkeepError, createClient } from 'cellkeep/client'
import { auditStream } from 'cellkeep/client/audit'
import { batch } from 'cellkeep/client/batch'
import { createLive } from 'cellkeep/client/live'
import { forRequest } from 'cellkeep/client/request'
import { retry } from 'cellkeep/client/retry'
import { defineConfig, query } from 'cellkeep'
import { z } from 'zod'

const client = createClient({ url: '', use: [retry({ times: 1 }), batch()], timeout: 5_000 })
const { cell } = await client.cell_create({ data: { label: 'x' } })
const version: number = cell.version
const outcome = await client.try.cell_update({ cell_id: cell.id, data: {} })
if (!outcome.ok && outcome.error.reason === 'cell_version_conflict') throw new Error(String(version))
const sessions: { id: string }[] = (await client.account_session_list()).sessions
const { account } = await client.account.status()
export const name: string = account.username + sessions.length

if (!outcome.ok && outcome.error.reason === 'transport_failed') outcome.error.text satisfies string
const visitor = forRequest(client, new Request('http://localhost'))
visitor.setCookies satisfies string[]
await visitor.cell_list({}, { timeout: 100, signal: new AbortController().signal })

const live = createLive(client, { acting: account.id })
live.on('role_grant_offer_received', ({ offer }) => void (offer.offer_id satisfies string))
// @ts-expect-error no such notification
live.on('role_grant_offer_recieved', () => {})
const follow = async () => {
  for await (const item of auditStream(client, { after: 0 })) if (item.type === 'event') item.seq satisfies number
}
void follow

// @ts-expect-error no such reason
if (!outcome.ok && outcome.error.reason === 'cell_path_tacken') throw outcome.error
// @ts-expect-error no such key
await client.cell_create({ data: {}, colour: 'red' })
// @ts-expect-error no such method
await client.cell_crate({ data: {} })
const declared = { doc: '', auth: { account: 'none', actor: 'none' }, output: z.null() } as const
// @ts-expect-error a query has no audit
query({ ...declared, handler: async (_input, { audit }) => audit })
// @ts-expect-error a port is no word
defineConfig({ port: 'many' })
export type Thrown = CellkeepError
`
