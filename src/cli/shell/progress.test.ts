import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, expect, it } from 'vitest'
import { emptyDatabase } from '../../../test/fresh-database.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { toUrl } from '../../testing/cluster.ts'
import { execute } from '../main.ts'
import { type Progress, withProgress } from './progress.ts'

const test = await serviceForFile()
const dir = await mkdtemp(join(tmpdir(), 'ck-progress-'))
afterAll(() => rm(dir, { recursive: true }))
const { client } = await test.account()
await client.cell_create({ data: { label: 'One' } })
// The reported share of the work comes from the statistics of the tables.
await test.service.app.db.run(sql`analyze`)

/** Erases the line of a terminal. */
const erase = '\r\u001b[K'

const run = async (args: string[], isTTY: boolean, url = test.databaseUrl) => {
  let stderr = ''
  const code = await execute(args, {
    stdin: Readable.from([]),
    stdout: { write: () => {} },
    stderr: { isTTY, write: (text: string) => (stderr += text) },
    env: { CELLKEEP_DATABASE_URL: url },
    cwd: dir,
  })
  expect(code).toBe(0)
  return stderr.replaceAll(erase, '<erased>')
}

it('a terminal sees how far long work is, and nothing is left of it at the end', async () => {
  const bar = /\[#*\.*\] +\d+ % {2}[\d,]+ /
  const backup = await run(['backup', 'shown'], true)
  expect(backup).toMatch(bar)
  expect(backup).toMatch(/rows, [a-z_]+<erased>$/)
  const target = await emptyDatabase()
  try {
    const restore = await run(['restore', 'shown'], true, toUrl(target.connection))
    expect(restore).toMatch(bar)
    expect(restore).toMatch(/bytes read<erased>$/)
  } finally {
    await target.drop()
  }
  expect(await run(['audit', 'export', '--out', 'rows'], true)).toMatch(/\d+ rows<erased>\{/)
})

it('a file or pipe gets nothing of it', async () => {
  expect(await run(['backup', 'silent'], false)).toBe('')
  expect(await run(['audit', 'export', '--out', 'silent-rows'], false)).toMatch(/^\{.*\}\n$/)
})

it('with fields to name the work, a file or pipe gets lines of JSON', async () => {
  let stderr = ''
  const write = (text: string) => (stderr += text)
  const work = async (progress: Progress) => {
    progress(1, 10)
    await new Promise(setImmediate)
    progress(2, 10, 'cell')
  }
  await withProgress({ stderr: { write } }, 'rows', work, { everySeconds: 1e-9, fields: { step: '0021_x' } })
  expect(stderr).toBe(
    '{"step":"0021_x","done":1,"of":10}\n{"step":"0021_x","table":"cell","done":2,"of":10}\n',
  )
})
