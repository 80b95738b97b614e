import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createClient } from '../../src/client/client.ts'
import { ownPostgres } from '../helpers/own-postgres.ts'
import { bootstrap, runCellkeep, startServer, workspace } from '../helpers/server-process.ts'

const space = await workspace()
afterAll(() => space.remove())

const upperCaseHook = (types: string) => `
  export default {
    limit_cell_create: '2/60',
    hooks: {
      validateData(kind${types}, data) { return { ...data, label: String(data.label).toUpperCase() } },
    },
  }`

describe.each([
  ['cellkeep.config.ts', upperCaseHook(': string | null')],
  ['cellkeep.config.mjs', upperCaseHook('')],
])('%s', (name, text) => {
  test('its hooks run and its settings are in force, unless a variable says otherwise', async () => {
    const cwd = await space.make(name)
    await writeFile(join(cwd, name), text)
    const { env } = await ownPostgres()
    const server = await startServer(cwd, { ...env, CELLKEEP_LIMIT_CELL_CREATE: '1/60' })
    await bootstrap(server)
    const { client } = server
    expect(await client.cell_create({ data: { label: 'a' } })).toMatchObject({
      cell: { data: { label: 'A' } },
    })
    const second = await client.try.cell_create({ data: { label: 'b' } })
    expect(second).toMatchObject({ ok: false, error: { reason: 'rate_limited' } })
    expect((await server.logged('started')).settings).toMatchObject({ config: join(cwd, name) })
    expect((await server.end('SIGTERM')).code).toBe(0)
  })
})

test('an action of its own is called like any other', async () => {
  const cwd = await space.make('own-action')
  const index = new URL('../../src/index.ts', import.meta.url).href
  await writeFile(
    join(cwd, 'cellkeep.config.ts'),
    `import { query } from '${index}'
     import { z } from '${import.meta.resolve('zod')}'
     export default {
       actions: {
         word_count: query({
           doc: 'How many words a text has.',
           auth: { account: 'none', actor: 'none' },
           input: z.strictObject({ text: z.string() }),
           output: z.object({ words: z.int() }),
           handler: async ({ text }) => ({ words: text.split(/\\s+/).length }),
         }),
       },
     }`,
  )
  const server = await startServer(cwd, (await ownPostgres()).env)
  const own = createClient<Record<string, never>>({ url: server.url }) as unknown as {
    word_count(input: unknown): Promise<unknown>
  }
  expect(await own.word_count({ text: 'one two three' })).toEqual({ words: 3 })
  expect((await server.end('SIGTERM')).code).toBe(0)
})

describe('a config file that cannot be used ends the start with 78 and its path', () => {
  const broken = {
    'a syntax error': ['cellkeep.config.mjs', 'export default {', 'cannot be loaded'],
    'a missing import': ['cellkeep.config.ts', `import './nothing.ts'`, 'cannot be loaded'],
    'an exception': ['cellkeep.config.js', `throw new Error('no luck')`, 'no luck'],
    'a misspelled hook': [
      'cellkeep.config.ts',
      'export default { hooks: { validatData: (kind: unknown, data: unknown) => data } }',
      'did you mean validateData?',
    ],
    'a wrong value': ['cellkeep.config.json', '{"port": "many"}', 'port'],
  }
  test.each(Object.entries(broken))('%s', async (what, [name = '', text = '', said = '']) => {
    const cwd = await space.make(what.replaceAll(' ', '-'))
    await writeFile(join(cwd, name), text)
    const { code, stderr } = await runCellkeep(cwd, ['config'])
    expect(code).toBe(78)
    expect(stderr).toContain(join(cwd, name))
    expect(stderr).toContain(said)
    expect(stderr).not.toMatch(/^\s+at /m)
  })
})

test.each([
  ['roles', '[{"name": "Editor", "grant_paths": ["admin"]}]', 'roles: the role "Editor" must be'],
  ['actions', '{"cell_get": {}}', 'Action cell_get: a built-in method has this name'],
  [
    'actions',
    '{"mine": {"handler": 1, "rate_limits": 1}}',
    'Action mine: declare it with query() or mutation().',
  ],
  [
    'reasons',
    '{"page_locked": {"status": 200}}',
    'reasons: the reason "page_locked" must have an HTTP status',
  ],
])(
  '%s that break a rule end the start with 78, named, and leave no database: %s',
  async (key, text, said) => {
    const cwd = await space.make(`broken-${said.replaceAll(/\W+/g, '-')}`)
    await writeFile(join(cwd, 'cellkeep.config.json'), `{"${key}": ${text}}`)
    const { code, stderr } = await runCellkeep(cwd, ['start'])
    expect(code).toBe(78)
    expect(stderr).toContain(said)
    expect(stderr).toContain(join(cwd, 'cellkeep.config.json'))
    expect(await readdir(cwd)).toEqual(['cellkeep.config.json'])
  },
)
