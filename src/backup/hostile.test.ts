import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { migratedDatabase } from '../../test/fresh-database.ts'
import { inFormat1, resealed, rowOf, target, writeLines } from '../../test/helpers/backup-files.ts'
import { numberRows } from '../audit/numbering.ts'
import { testService } from '../testing/index.ts'
import { writeBackup } from './backup.ts'
import { restoreBackup } from './restore.ts'

const dir = await mkdtemp(join(tmpdir(), 'ck-bak-'))
const test = await testService()
const ada = await test.account({ username: 'ada' })
await ada.client.cell_create({ data: { text: 'é' } })
await numberRows(test.service.app.db)
const file = join(dir, 'whole')
await writeBackup({ connectionString: test.databaseUrl }, { to: file, version: '1.2.3' })
const whole = await readFile(file)
await test.close()
afterAll(() => rm(dir, { recursive: true }))

async function changed(name: string, change: (text: string[]) => string[]): Promise<string> {
  const file = join(dir, name)
  await writeLines(file, resealed(change(gunzipSync(whole).toString('utf8').split('\n').slice(0, -1))))
  return file
}

const replaced = (from: string | RegExp, to: string) => (text: string[]) =>
  text.map((line) => line.replace(from, to))
it.each<[string, (text: string[]) => string[], RegExp]>([
  ['a number that no column holds', rowOf('audit_log', (row) => ({ ...row, seq: 1e30 })), /rows before line/],
  ['a value of another type', rowOf('account', (row) => ({ ...row, id: 'sesame' })), /22P02/],
  ['a byte that no text holds', rowOf('account', (row) => ({ ...row, username: 'a\u0000' })), /22P05/],
  [
    'a row twice',
    (text) => text.flatMap((line) => (line.includes('"ada"') ? [line, line] : [line])),
    /unique/,
  ],
  ['a row that breaks a rule', rowOf('cell', (row) => ({ ...row, visibility: 'x' })), /check constraint/],
  ['a row that names none', rowOf('actor', (row) => ({ ...row, account_id: ada.actor_id })), /foreign key/],
  ['rows that are none', rowOf('account', () => 7), /rows before line/],
  ['text that is no JSON', replaced(/^{"id".*/, '}]; drop table account'), /22P02/],
  ['a row before any table', (text) => text.toSpliced(1, 0, '{}'), /at line 2: a row before any table/],
  [
    'a table twice',
    (text) => text.flatMap((line) => (line.includes('"table":"cell"') ? [line, line] : [line])),
    /at line \d+: neither/,
  ],
  ['a table like a path', replaced('"table":"cell"', '"table":"../cell"'), /at line \d+: neither/],
  ['a table that is a number', replaced('"table":"cell"', '"table":7'), /at line \d+: neither/],
  ['a line that is only null', (text) => text.toSpliced(3, 0, '#null'), /at line 4: neither/],
  ['a line that is only a number', (text) => text.toSpliced(3, 0, '#5'), /at line 4: neither/],
  ['a column twice', replaced('"columns":["id"', '"columns":["id","id"'), /do not match those of/],
  ['columns that are none', replaced(/"columns":\[[^\]]*\]/, '"columns":{"length":0}'), /neither/],
  [
    'a table that ends twice',
    (text) => text.toSpliced(2, 0, '#{"table_end":"account"}'),
    /a row before any table/,
  ],
  [
    'a table without its end',
    (text) => text.filter((line) => !line.includes('"table_end":"cell"')),
    /neither/,
  ],
  [
    'a table left out',
    (text) => text.filter((line) => !/"table(_end)?":"invite"/.test(line)),
    /the table invite is missing/,
  ],
  [
    'a column left out',
    (text) => text.map((line) => line.replace(/("table":"cell","columns":\[.*),"deleted_at"/, '$1')),
    /columns do not match those of cell/,
  ],
])(
  'refuses a file with %s in one line that says where, and nothing is restored',
  async (what, change, why) => {
    // Migrating an empty one takes most of the time, and what a file holds is read only after that.
    const to = await target(migratedDatabase)
    const file = await changed(what.replaceAll(' ', '-'), change)
    const error = await restoreBackup(to.connection, file).then(
      () => expect.unreachable(),
      (failure) => failure,
    )
    expect(error).toMatchObject({ reason: 'backup_damaged', exitCode: 1 })
    expect(error.message).toMatch(/^\S+ is damaged .*\. Nothing was restored\.$/)
    expect(error.message).toMatch(why)
    expect(error.message).not.toMatch(/sesame|argon2/)
    const client = await to.open()
    expect((await client.query('select 1 from account')).rows).toEqual([])
  },
)

it.each([
  ['"migrations":"0001_accounts"', /"migrations":\[[^\]]*\]/],
  ['"migrations":[{}]', /"migrations":\[[^\]]*\]/],
  ['"version":"\\u001b[2J"', /"version":"[^"]*"/],
  ['"created_at":7', /"created_at":"[^"]*"/],
])('refuses a header with %s', async (to, from) => {
  const { connection } = await target()
  const file = await changed('header', (text) => text.with(0, (text[0] as string).replace(from, to)))
  await expect(restoreBackup(connection, file)).rejects.toMatchObject({ reason: 'backup_unreadable' })
})

it.each([
  ['another backup', whole],
  ['an empty line', gzipSync('\n')],
])('refuses a file in which %s follows the backup, and restores nothing of it', async (_what, tail) => {
  const file = join(dir, 'followed')
  await writeFile(file, Buffer.concat([whole, tail]))
  const to = await target()
  await expect(restoreBackup(to.connection, file)).rejects.toMatchObject({
    reason: 'backup_damaged',
    message: expect.stringMatching(
      / at line \d+: something follows the end of the backup\. Nothing was restored\.$/,
    ),
  })
  const client = await to.open()
  expect((await client.query('select 1 from account')).rows).toEqual([])
})

it('refuses a file of one endless line before it exhausts memory', async () => {
  const { connection } = await target()
  const file = join(dir, 'endless')
  // A gigabyte, in parts, since compressed data may be concatenated.
  const part = gzipSync(Buffer.alloc(16 * 1024 * 1024, 'x'))
  await writeFile(file, Buffer.concat(Array.from({ length: 64 }, () => part)))
  const before = process.memoryUsage().rss
  await expect(restoreBackup(connection, file)).rejects.toMatchObject({
    reason: 'backup_unreadable',
    message: expect.stringContaining('64 MiB'),
  })
  expect(process.memoryUsage().rss - before).toBeLessThan(400 * 1024 * 1024)
})

it('refuses any other mutation of a backup with one of its reasons, never with another error', async () => {
  // Without checksums, so that the checks behind them are reached.
  const plain = Buffer.from(inFormat1(gunzipSync(whole).toString('utf8').split('\n')).join('\n'))
  const file = join(dir, 'fuzzed')
  let { connection } = await target()
  const some = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
    byte: fc.nat(255),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.boolean(),
      fc.array(some, { minLength: 1, maxLength: 3 }),
      async (isZipped, changes) => {
        const copy = Buffer.from(isZipped ? whole : plain)
        for (const { at, byte } of changes) {
          const index = Math.floor(at * copy.length)
          copy[index] = copy[index] === byte ? byte ^ 1 : byte
        }
        await writeFile(file, isZipped ? copy : gzipSync(copy))
        const outcome = await restoreBackup(connection, file).then(
          () => 'restored',
          (error) => error,
        )
        // If a letter in a text has changed, the backup may still be valid.
        if (outcome === 'restored') connection = (await target()).connection
        else expect(outcome).toMatchObject({ reason: expect.stringMatching(/^backup_/) })
      },
    ),
    { numRuns: 40 },
  )
})
