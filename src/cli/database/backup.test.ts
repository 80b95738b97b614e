import { execFileSync } from 'node:child_process'
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { migratedDatabase } from '../../../test/fresh-database.ts'
import { shell } from '../../../test/helpers/shell.ts'
import type { Environment } from '../../config/reading.ts'
import { toUrl } from '../../testing/cluster.ts'

it('a backup of a database of one’s own names the places of the keys as they were set', async () => {
  await using database = Object.assign(await migratedDatabase(), {
    [Symbol.asyncDispose]: () => database.drop(),
  })
  const cwd = await mkdtemp(join(tmpdir(), 'ck-bak-'))
  const CELLKEEP_DATABASE_URL = toUrl({ ...database.connection, schema: undefined })
  const key = 'k'.repeat(32)
  const kept = async (to: string, keys: Environment): Promise<string | undefined> => {
    const { stdout } = await shell({ CELLKEEP_DATABASE_URL, ...keys }, cwd)(['backup', to])
    return /: keep (.*) too\.$/m.exec(stdout)?.[1]
  }
  expect(await kept('one', { CELLKEEP_COOKIE_KEYS: key })).toBe(
    'the value of CELLKEEP_COOKIE_KEYS and the value of CELLKEEP_SECRET_KEYS, if the server has one,',
  )
  await writeFile(join(cwd, 'keys'), key)
  const config = join(cwd, 'cellkeep.config.json')
  await writeFile(config, JSON.stringify({ secret_keys: key }))
  expect(await kept('two', { CELLKEEP_COOKIE_KEYS_FILE: 'keys' })).toBe(
    `the file that CELLKEEP_COOKIE_KEYS_FILE names and secret_keys in ${config}`,
  )
  await rm(cwd, { recursive: true })
})

it.each<[string, string | Buffer, RegExp]>([
  ['a text', 'no backup', /is not a gzip file, so it is not a backup of Cellkeep\.$/m],
  ['another archive', gzipSync('no backup\n'), /is not a backup of Cellkeep\.$/m],
])('a restore of %s is refused before a database is made', async (_what, content, said) => {
  const cwd = await mkdtemp(join(tmpdir(), 'ck-bak-'))
  // For root, the database would run as another user.
  await chmod(cwd, 0o755)
  await writeFile(join(cwd, 'file'), content)
  const { code, stderr } = await shell({ CELLKEEP_DATA_DIR: join(cwd, 'data') }, cwd)(['restore', 'file'])
  expect([code, stderr]).toEqual([1, expect.stringMatching(said)])
  expect(await readdir(cwd)).toEqual(['file'])
  await rm(cwd, { recursive: true })
})

it('a restore reads a pipe once', async () => {
  await using database = Object.assign(await migratedDatabase(), {
    [Symbol.asyncDispose]: () => database.drop(),
  })
  const cwd = await mkdtemp(join(tmpdir(), 'ck-bak-'))
  const run = shell({ CELLKEEP_DATABASE_URL: toUrl({ ...database.connection, schema: undefined }) }, cwd)
  expect(await run(['backup', 'file'])).toMatchObject({ code: 0 })
  execFileSync('mkfifo', [join(cwd, 'pipe')])
  const [{ code, stdout }] = await Promise.all([
    run(['restore', 'pipe']),
    readFile(join(cwd, 'file')).then((bytes) => writeFile(join(cwd, 'pipe'), bytes)),
  ])
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^Restored \d+ rows/)])
  await rm(cwd, { recursive: true })
})
