import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { sql } from '../../src/db/db.ts'
import { entry, runCellkeep } from '../helpers/server-process.ts'
import { serviceForFile } from '../helpers/service.ts'

const cwd = await mkdtemp(join(tmpdir(), 'ck-import-'))
afterAll(() => rm(cwd, { recursive: true }))
const test = await serviceForFile()
const { db } = test.service.app
const env = { CELLKEEP_DATABASE_URL: test.databaseUrl }
const size = 20_000
const lines = Array.from({ length: size }, (_, at) =>
  JSON.stringify({ username: `killed-${at}`, external_id: `${at}` }),
)
await writeFile(join(cwd, 'users.jsonl'), lines.join('\n'))

const counted = async () =>
  (await db.one<{ n: number }>(sql`select count(*) as n from account_import where source = 'users.jsonl'`)).n

/** Runs the command until it has imported more accounts, then ends it by the signal. */
async function endWith(signal: NodeJS.Signals): Promise<number | null> {
  const before = await counted()
  const child = spawn(process.execPath, [entry, 'account', 'import', 'users.jsonl'], {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    stdio: 'ignore',
  })
  const ended = once(child, 'exit')
  while (child.exitCode === null && (await counted()) === before);
  child.kill(signal)
  const [code] = await ended
  const after = await counted()
  expect([after > before, after < size, after % 500]).toEqual([true, true, 0])
  return code
}

it('killed thrice in the middle and interrupted once, an import has made each account once', async () => {
  for (let time = 0; time < 3; time++) expect(await endWith('SIGKILL')).toBeNull()
  expect(await endWith('SIGINT')).toBe(130)
  const before = await counted()
  const run = async () => {
    const { code, stdout } = await runCellkeep(cwd, ['account', 'import', 'users.jsonl', '--json'], env)
    return [code, JSON.parse(stdout.join(''))]
  }
  const done = { lines: size, refused: 0, reasons: {}, complete: true, source: 'users.jsonl', dry_run: false }
  expect(await run()).toEqual([0, { ...done, imported: size - before, skipped: before }])
  expect(await run()).toEqual([0, { ...done, imported: 0, skipped: size }])
  expect(
    await db.one(sql`
      select (select count(*) from account) as accounts, (select count(*) from actor) as actors,
        (select count(distinct target_account_id) from audit_entries() where event_type = 'account_create') as rows,
        (select count(*) from audit_entries()) as log`),
  ).toEqual({ accounts: size, actors: size, rows: size, log: size })
})

it('that waits for lines of standard input ends by a signal', async () => {
  const args = [entry, 'account', 'import', '-', '--source', 'waiting', '--json']
  const child = spawn(process.execPath, args, {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = once(child, 'exit')
  const stdout = text(child.stdout)
  const users = Array.from({ length: 501 }, (_, at) => JSON.stringify({ username: `waiting-${at}` }))
  child.stdin.write(`${users.join('\n')}\n{"username":`)
  const isKept = sql`select from account_import where source = 'waiting'`
  await expect.poll(() => db.first(isKept), { timeout: 30_000 }).toBeDefined()
  child.kill('SIGTERM')
  expect(await ended).toEqual([143, null])
  expect(JSON.parse(await stdout)).toMatchObject({ lines: 500, imported: 500, refused: 0, complete: false })
})
