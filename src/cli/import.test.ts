import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, describe, expect, it } from 'vitest'
import { firebaseProject, foreignHashes } from '../../test/helpers/foreign-hashes.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { shell } from '../../test/helpers/shell.ts'
import { execute } from './main.ts'

const cwd = await mkdtemp(join(tmpdir(), 'ck-import-'))
afterAll(() => rm(cwd, { recursive: true }))
const test = await serviceForFile()
const env = { CELLKEEP_DATABASE_URL: test.databaseUrl }
const cellkeep = shell(env, cwd)
const write = (name: string, lines: readonly unknown[]) =>
  writeFile(
    join(cwd, name),
    lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'),
  )
const users = (prefix: string, number: number) =>
  Array.from({ length: number }, (_, at) => ({ username: `${prefix}-${at}` }))
const all = ['account', 'import']

describe('account import', () => {
  it('reports refused lines in a new file of its owner, without names and hashes', async () => {
    const secret = '5f4dcc3b5aa765d61d8327deb882cf99'
    await write('mixed.jsonl', [
      { username: 'mixed-1', email: 'one@example.org' },
      '{"username": "mixed-2"',
      { username: 'mixed-3', password: secret, external_id: '3' },
      `{"username":"mixed-4","actor_name":"${'x'.repeat(70_000)}"}`,
      '',
      { username: 'mixed-6', email: 'ONE@example.org' },
    ])
    expect((await cellkeep([...all, 'mixed.jsonl', '--dry-run'])).stdout).toContain('with --report FILE')
    const args = [...all, 'mixed.jsonl', '--report', 'refused.jsonl']
    const { code, stdout, stderr } = await cellkeep(args)
    expect(stdout).not.toContain('--report')
    expect([code, stderr]).toEqual([1, ''])
    expect(stdout).toMatch(/^lines +6\nimported +1\nskipped +0\nrefused +5\n/)
    const report = await readFile(join(cwd, 'refused.jsonl'), 'utf8')
    expect(
      report
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([
      { line: 2, external_id: null, reason: 'bad_format' },
      { line: 3, external_id: '3', reason: 'hash_unsupported' },
      { line: 4, external_id: null, reason: 'bad_format' },
      { line: 5, external_id: null, reason: 'bad_format' },
      { line: 6, external_id: null, reason: 'email_taken' },
    ])
    expect((await stat(join(cwd, 'refused.jsonl'))).mode & 0o777).toBe(0o600)
    const again = await cellkeep(args)
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('already exists')])
  })

  it('takes blank lines at the end for none', async () => {
    await write('blank.jsonl', [...users('blank', 2), '', ' \r', '', ''])
    const { code, stdout } = await cellkeep([...all, 'blank.jsonl'])
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^lines +2\nimported +2\nskipped +0\nrefused +0\n/),
    ])
  })

  it('that reaches no database leaves no report, which would be in the way of the next try', async () => {
    await write('early.jsonl', users('early', 1))
    const args = [...all, 'early.jsonl', '--report', 'early-refused.jsonl']
    const nowhere = { CELLKEEP_DATABASE_URL: 'postgres://127.0.0.1:1/none', CELLKEEP_DATABASE_WAIT_MS: '0' }
    expect((await shell(nowhere, cwd)(args)).code).not.toBe(0)
    expect((await cellkeep(args)).code).toBe(0)
  })

  it('names a file that exists but cannot be opened', async () => {
    const socket = createServer().listen(join(cwd, 'socket'))
    await once(socket, 'listening')
    const { code, stderr } = await cellkeep([...all, 'socket'])
    socket.close()
    expect([code, stderr]).toEqual([1, expect.stringMatching(/socket cannot be read: [A-Z]+\. Name a file/)])
  })

  it('takes standard input, a source, a trial and the parameters of a Firebase project', async () => {
    const password = foreignHashes.find(([made]) => made.startsWith('firebase'))?.[1]
    const input = JSON.stringify({ username: 'piped', password })
    await write('project.json', [firebaseProject])
    const run = (...more: string[]) =>
      cellkeep(
        [...all, '-', '--source', 'app', '--firebase-params', 'project.json', '--json', ...more],
        input,
      )
    const done = { lines: 1, skipped: 0, refused: 0, complete: true, reasons: {}, source: 'app' }
    for (const [words, dry_run] of [
      [['--dry-run'], true],
      [[], false],
    ] as const) {
      const { code, stdout, stderr } = await run(...words)
      expect([code, stderr, JSON.parse(stdout)]).toEqual([0, '', { ...done, imported: 1, dry_run }])
    }
    expect(JSON.parse((await run()).stdout)).toMatchObject({ imported: 0, skipped: 1 })
  })

  it('stops at the first refused line if asked to', async () => {
    await write('strict.jsonl', [{ username: '!' }, { username: 'strict' }])
    const { code, stdout } = await cellkeep([...all, 'strict.jsonl', '--on-conflict', 'fail', '--json'])
    expect([code, JSON.parse(stdout)]).toMatchObject([
      1,
      { lines: 2, refused: 1, imported: 0, complete: false },
    ])
  })

  it('shows a terminal how far it is', async () => {
    await write('shown.jsonl', users('shown', 1000))
    let stderr = ''
    const io = { stdin: Readable.from([]), stdout: { write: () => {} }, env, cwd }
    const isTTY = true
    await execute([...all, 'shown.jsonl'], { ...io, stderr: { isTTY, write: (text) => (stderr += text) } })
    expect(stderr).toMatch(/\[#+\.*\] +\d+ % {2}[\d,]+ lines/)
  })

  it.each([
    [['missing.jsonl'], 1, /missing\.jsonl does not exist\. Name a file/],
    [['.'], 1, /cannot be read: EISDIR/],
    [[], 2, /^FILE is missing\.\n/],
    [['a.jsonl', '--on-conflict', 'merge'], 2, /--on-conflict is skip or fail/],
    [['a.jsonl', '--firebase-params', 'a.jsonl'], 2, /must be a JSON object with base64_signer_key/],
  ])('%j says what is wrong', async (args, expected, message) => {
    await write('a.jsonl', ['{"base64_signer_key": "a secret"}'])
    const { code, stderr } = await cellkeep([...all, ...args])
    expect([code, stderr]).toEqual([expected, expect.stringMatching(message)])
    expect(stderr).not.toContain('a secret')
  })
})
