import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ConfigError } from './config.ts'
import { defineConfig, loadConfig, loadConfigFile } from './file.ts'

let cwd: string
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'ck-file-'))
})
afterEach(() => rm(cwd, { recursive: true }))

const put = async (name: string, text: string): Promise<string> => {
  await writeFile(join(cwd, name), text)
  return join(cwd, name)
}
const load = (CELLKEEP_CONFIG?: string) => loadConfigFile({ env: { CELLKEEP_CONFIG }, cwd })

async function problemOf(name?: string): Promise<string> {
  const error: ConfigError = await load(name).then(
    () => expect.unreachable(),
    (failure) => failure,
  )
  expect(error).toMatchObject({ name: 'ConfigError', exitCode: 78 })
  expect(error.problems).toHaveLength(1)
  return error.problems[0] ?? ''
}

it('without a file there is none, and an empty name is unset', async () => {
  expect(await load()).toBeUndefined()
  expect(await load('')).toBeUndefined()
})

it.each([
  ['cellkeep.config.ts', 'const port: number = 1\nexport default { port } satisfies object\n'],
  ['cellkeep.config.mjs', 'export default { port: 1 }'],
  ['cellkeep.config.js', 'export default { port: 1 }'],
  ['cellkeep.config.json', '\uFEFF{ "port": 1 }'],
])('%s is found in the working directory', async (name, text) => {
  const path = await put(name, text)
  expect(await load()).toEqual({ path, options: { port: 1 } })
})

it('the first of the four names counts', async () => {
  await put('cellkeep.config.json', '{"port":2}')
  await put('cellkeep.config.mjs', 'export default { port: 1 }')
  expect((await load())?.options).toEqual({ port: 1 })
})

it('a named file counts instead, relative to the working directory', async () => {
  await put('cellkeep.config.json', '{"port":2}')
  const path = await put('other.json', '{"port":3}')
  expect(await load('other.json')).toEqual({ path, options: { port: 3 } })
  expect(await load(path)).toEqual({ path, options: { port: 3 } })
})

it('a named file that is missing or of another type is refused', async () => {
  expect(await problemOf('nothing.json')).toMatch(
    /^CELLKEEP_CONFIG names .*nothing\.json, which does not exist/,
  )
  await put('config.yaml', 'port: 1')
  expect(await problemOf('config.yaml')).toMatch(/^CELLKEEP_CONFIG must name a file that ends in \.ts/)
})

it.each([
  ['broken.json', '{ "port": hunter2 }', /cannot be loaded: not valid JSON/],
  ['broken.mjs', 'export default {', /cannot be loaded: \w*Error/],
  ['throws.mjs', 'throw new Error("no such vault")', /cannot be loaded: Error: no such vault/],
  ['import.mjs', 'import "./nothing.mjs"', /cannot be loaded: .*nothing\.mjs/],
  ['nothing.mjs', 'export const port = 1', /must export an object as its default/],
  ['list.json', '[]', /must export an object/],
  ['null.json', 'null', /must export an object/],
  ['function.mjs', 'export default () => ({})', /must export an object/],
  ['promise.mjs', 'export default Promise.resolve({})', /must export an object/],
])('%s is refused with file and rule', async (name, text, rule) => {
  const path = await put(name, text)
  const problem = await problemOf(name)
  expect(problem.startsWith(path)).toBe(true)
  expect(problem).toMatch(rule)
  expect(problem).not.toContain('hunter2')
})

it('a directory in place of the file is refused', async () => {
  expect(await problemOf('.')).toMatch(/^CELLKEEP_CONFIG must name a file/)
})

it('settings and declarations of the file come with the environment over them', async () => {
  const path = await put(
    'cellkeep.config.mjs',
    'export default { port: 1, cors: true, roles: [{ name: "editor" }] }',
  )
  const { config, sources, declarations } = await loadConfig({
    env: { CELLKEEP_PORT: '2' },
    cwd,
    mode: 'server',
  })
  expect(config).toMatchObject({ port: 2, cors: true, config: path })
  expect(sources).toMatchObject({ port: 'env', cors: 'file' })
  expect(declarations).toEqual({ roles: [{ name: 'editor' }] })
})

it('an unknown key is refused with file and key', async () => {
  const path = await put('cellkeep.config.json', '{"alowed_origins":[]}')
  await expect(loadConfig({ env: {}, cwd, mode: 'server' })).rejects.toMatchObject({
    problems: [`alowed_origins (in ${path}) is not a setting; did you mean allowed_origins?`],
  })
})

it('defineConfig gives back what it takes', () => {
  const options = { port: 1, allowed_origins: ['https://a.example'] }
  expect(defineConfig(options)).toBe(options)
})

it('a plain Node process loads TypeScript and refuses what does not parse', async () => {
  await put('cellkeep.config.ts', 'type Port = number\nexport default { port: 1 as Port }\n')
  await put('broken.ts', 'export default { port: 1 as }\n')
  const { said, stderr } = await inNode(`[(await load()).options, await refused('broken.ts')]`)
  expect(said).toEqual([{ port: 1 }, [expect.stringMatching(/broken\.ts cannot be loaded: /)]])
  expect(stderr).toBe('')
})

it.each([
  ['import', "import { sep } from 'node:path'\nexport default { data_dir: sep }\n"],
  ['export', 'export default { port: 1 }\n'],
])('says how a package is made to use modules, at its first %s', async (_word, text) => {
  await put('package.json', '{ "type": "commonjs" }')
  await put('cellkeep.config.ts', text)
  const { said } = await inNode(`await refused('cellkeep.config.ts')`)
  expect(said).toEqual([expect.stringMatching(/SyntaxError: .*; set "type": "module" in the package\.json/)])
})

it('says how a package that it imports is installed beside it', async () => {
  await put('cellkeep.config.ts', "import 'no-such-package'\nexport default {}\n")
  const { said } = await inNode(`await refused('cellkeep.config.ts')`)
  expect(said).toEqual([expect.stringMatching(/; run `npm install no-such-package` in the directory of /)])
})

it('warns of a file that imports another copy of the package than the one that runs', async () => {
  await put('cellkeep.config.mjs', 'export default {}')
  const parsed = () => loadConfig({ env: {}, cwd, mode: 'server' })
  expect((await parsed()).warnings).toEqual([])
  const other = join(cwd, 'node_modules', 'cellkeep')
  await mkdir(other, { recursive: true })
  await put('node_modules/cellkeep/package.json', '{ "name": "cellkeep" }')
  expect((await parsed()).warnings).toEqual([
    expect.stringContaining(`imports the cellkeep in ${other}, but`),
  ])
  await rm(other, { recursive: true })
  await symlink(fileURLToPath(new URL('../..', import.meta.url)), other)
  expect((await parsed()).warnings).toEqual([])
})

/** The result of an expression over `load` and `refused` in a plain Node process; Vitest would transform the files. */
async function inNode(expression: string): Promise<{ said: unknown; stderr: string }> {
  const program = JSON.stringify(new URL('./file.ts', import.meta.url))
  const script = `const { loadConfigFile } = await import(${program})
    const load = (CELLKEEP_CONFIG) => loadConfigFile({ env: { CELLKEEP_CONFIG }, cwd: process.cwd() })
    const refused = (file) => load(file).catch((error) => error.problems)
    console.log(JSON.stringify(${expression}))`
  const args = ['--input-type=module', '-e', script]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd })
  return { said: JSON.parse(stdout), stderr }
}
