import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { migratedDatabase } from '../../../test/fresh-database.ts'
import { shell } from '../../../test/helpers/shell.ts'
import { toUrl } from '../../testing/cluster.ts'

it('a backup of a database of one’s own names no file of keys, as there is none', async () => {
  await using database = Object.assign(await migratedDatabase(), {
    [Symbol.asyncDispose]: () => database.drop(),
  })
  const cwd = await mkdtemp(join(tmpdir(), 'ck-bak-'))
  const cellkeep = shell(
    {
      CELLKEEP_DATABASE_URL: toUrl({ ...database.connection, schema: undefined }),
      CELLKEEP_COOKIE_KEYS: 'k'.repeat(32),
    },
    cwd,
  )
  const { code, stdout } = await cellkeep(['backup', 'all'])
  expect(code).toBe(0)
  expect(stdout).toContain(
    'keep the value of CELLKEEP_COOKIE_KEYS and the value of CELLKEEP_SECRET_KEYS, if the server has one, too.',
  )
  expect(stdout).not.toContain('.cellkeep')
  await rm(cwd, { recursive: true })
})
