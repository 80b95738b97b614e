import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { constants, getPriority } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { connectionTo } from '../../src/embedded/postgres-process.ts'
import {
  databaseOf,
  type Ended,
  entry,
  runCellkeep,
  type ServerProcess,
  startServer,
  workspace,
} from '../helpers/server-process.ts'

const space = await workspace()
afterAll(() => space.remove())

let cwd: string
const cellkeep = (args: string[], input?: string, at = cwd): Promise<Ended> =>
  runCellkeep(at, args, {}, input)
const secret = 'a very long password'
const status = (server: ServerProcess, cookie: string) =>
  fetch(`${server.url}/api/account/status`, { headers: { cookie } }).then((response) => response.status)
async function signIn(server: ServerProcess, username: string, password = secret): Promise<string> {
  const response = await fetch(`${server.url}/api/account/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username, password }),
  })
  expect(response.status).toBe(200)
  return response.headers.getSetCookie()[0]?.split(';')[0] as string
}

/** Whether Linux still holds a signal for this process; elsewhere none is known. */
const hasPending = async (pid: number): Promise<boolean> =>
  /^ShdPnd:\t.*[1-9a-f]/m.test(await readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''))

describe('beside a running server', () => {
  let server: ServerProcess
  let database: number | undefined
  beforeAll(async () => {
    cwd = await space.furnished('beside')
    server = await startServer(cwd)
    database = await databaseOf(cwd)
  })

  test('the first account is made, and the token is void', async () => {
    const token = join(cwd, '.cellkeep', 'bootstrap_token')
    expect(existsSync(token)).toBe(true)
    const before = await cellkeep(['doctor'])
    expect([before.code, before.stdout[0]]).toEqual([1, 'not_bootstrapped'])
    const { code, stderr } = await cellkeep(
      ['account', 'create', '--username', 'ada', '--keeper'],
      `${secret}\n`,
    )
    expect([code, stderr]).toEqual([0, ''])
    expect(existsSync(token)).toBe(false)
    await signIn(server, 'ada')
    expect(await cellkeep(['doctor'])).toMatchObject({ code: 0, stdout: ['Nothing is wrong.'] })
    const again = await cellkeep(['bootstrap-token', 'reset'])
    expect([again.code, again.stderr]).toMatchObject([
      1,
      expect.stringMatching(/^Bootstrap works only once and has been done\./),
    ])
  })

  test('what a command ends is refused at the next request', async () => {
    const cookie = await signIn(server, 'ada')
    expect(await status(server, cookie)).toBe(200)
    const { code, stdout } = await cellkeep(['session', 'revoke-all', 'ada'])
    expect([code, stdout[0]]).toMatchObject([0, expect.stringMatching(/^\d sessions? ended\.$/)])
    expect(await status(server, cookie)).toBe(401)
  })

  test('a new password is read from standard input and is shown nowhere', async () => {
    const next = 'an even longer password'
    const { code, stdout, stderr } = await cellkeep(['account', 'set-password', 'ada'], next)
    expect([code, stdout.join('\n') + stderr]).toEqual([0, expect.not.stringContaining(next)])
    await signIn(server, 'ada', next)
    expect(server.stderr() + JSON.stringify(server.log())).not.toContain(next)
    await cellkeep(['account', 'set-password', 'ada'], secret)
  })

  test('refusals are exit code 1, wrong usage 2', async () => {
    expect(await cellkeep(['account', 'purge', 'ada', '--confirm'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^The account holds the role keeper\.\n {2}Run `cellkeep keeper transfer/,
      ),
    })
    expect((await cellkeep(['account', 'purge'])).code).toBe(2)
  })

  test('a backup is complete, for its owner only, and overwrites nothing', async () => {
    const run = () => cellkeep(['backup', 'all.ckb', '--json'])
    const { code, stdout } = await run()
    expect([code, JSON.parse(stdout[0] as string)]).toMatchObject([0, { file: join(cwd, 'all.ckb') }])
    expect((await stat(join(cwd, 'all.ckb'))).mode & 0o777).toBe(0o600)
    const bytes = await readFile(join(cwd, 'all.ckb'))
    expect(await run()).toMatchObject({ code: 1, stderr: expect.stringContaining('already exists') })
    expect(await readFile(join(cwd, 'all.ckb'))).toEqual(bytes)
  })

  test.for([
    ['SIGINT', 130, undefined],
    ['SIGTERM', 143, undefined],
    // npm also forwards the signal that the terminal has already sent.
    ['SIGINT', 130, 'SIGTERM'],
  ] as const)('%s in the middle of a backup leaves no part of a file', async ([signal, code, forwarded]) => {
    const client = new pg.Client(connectionTo(join(cwd, '.cellkeep', 'socket'), 'cellkeep'))
    await client.connect()
    onTestFinished(() => client.end())
    // Blocks the backup once its file exists.
    await client.query('begin; reindex table cellkeep.cell_item')
    const file = join(cwd, `${signal}.ckb`)
    const child = spawn(process.execPath, [entry, 'backup', file], {
      cwd,
      env: { ...process.env, ...(forwarded && { npm_lifecycle_script: 'cellkeep backup' }) },
      // A session of its own, as under cron.
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const ended = once(child, 'close')
    const said = child.stderr.setEncoding('utf8').toArray()
    await expect.poll(() => existsSync(file)).toBe(true)
    const { rows } = await client.query(
      // That of the previous run may still be ending.
      `select pid from pg_stat_activity where application_name = 'cellkeep backup' order by backend_start desc`,
    )
    for (const pid of [rows[0].pid, child.pid]) {
      expect(getPriority(pid)).toBe(constants.priority.PRIORITY_BELOW_NORMAL)
      if (existsSync('/proc/self/autogroup'))
        expect(await readFile(`/proc/${pid}/autogroup`, 'utf8')).toMatch(/nice 10$/m)
    }
    child.kill(signal)
    if (forwarded) {
      // The threads of a process may take two pending signals in either order.
      while (await hasPending(child.pid as number));
      child.kill(forwarded)
    }
    expect(await ended).toEqual([code, null])
    expect((await said).join('')).toBe('Interrupted; no backup was made.\n')
    expect(existsSync(file)).toBe(false)
  })

  test.for([
    [['backup', 'short'], 'write'],
    [['audit', 'export', '--out', 'short'], 'write'],
    [['account', 'import', 'refused.jsonl', '--report', 'short'], 'write'],
    [['new', 'short'], "copyfile '.*' -> '.*'"],
  ] as const)('the cause that stopped the writing of a file is reported: %j', async ([words, call]) => {
    await writeFile(join(cwd, 'refused.jsonl'), '{}\n'.repeat(100))
    // Limits the size of files, so that writes fail as on a full disk.
    const small = `trap '' XFSZ; ulimit -f 1; exec "$@"`
    const child = spawn('/bin/sh', ['-c', small, 'sh', process.execPath, entry, ...words], {
      cwd,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const ended = once(child, 'close')
    const said = (await child.stderr.setEncoding('utf8').toArray()).join('')
    expect(await ended).toEqual([1, null])
    const [what, cause] = said.split(' cannot be written: EFBIG: file too large, ')
    expect(what).toBe(join(cwd, 'short'))
    expect(cause).toMatch(new RegExp(`^${call}\\.\\n$`))
    expect(existsSync(join(cwd, 'short'))).toBe(false)
  })

  test('SIGTERM in the middle of an export leaves no part of a file', async () => {
    const client = new pg.Client(connectionTo(join(cwd, '.cellkeep', 'socket'), 'cellkeep'))
    await client.connect()
    // Blocks the export once its file exists.
    await client.query('begin; lock table cellkeep.audit_log')
    const child = spawn(process.execPath, [entry, 'audit', 'export', '--out', 'rows'], {
      cwd,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const ended = once(child, 'close')
    const said = child.stderr.setEncoding('utf8').toArray()
    await expect.poll(() => existsSync(join(cwd, 'rows'))).toBe(true)
    child.kill('SIGTERM')
    await client.end()
    expect(await ended).toEqual([143, null])
    expect((await said).join('')).toBe('Interrupted; no file was made.\n')
    expect(existsSync(join(cwd, 'rows'))).toBe(false)
  })

  test('tail ends when its reader does', async () => {
    const words = ['token', 'create', 'ada', '--scope', 'full', '--days', '1', '--json']
    const { token } = JSON.parse((await cellkeep(words)).stdout[0] as string)
    const child = spawn(
      '/bin/sh',
      ['-c', '"$@" | head -n 1', 'sh', process.execPath, entry, 'tail', '--after', '0'],
      {
        cwd,
        env: { ...process.env, CELLKEEP_URL: server.url, CELLKEEP_TOKEN: token },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    // `tail` notices that `head` is gone only when it writes the next row; until then its output stays open.
    let isEnded = false
    const ended = once(child, 'close').finally(() => {
      isEnded = true
    })
    const said = child.stdout.setEncoding('utf8').toArray()
    const writeRow = async (): Promise<boolean> => {
      if (!isEnded) await signIn(server, 'ada')
      return isEnded
    }
    await expect.poll(writeRow).toBe(true)
    const [line] = (await said).join('').split('\n')
    expect([line, await ended]).toEqual([expect.stringContaining(' account_create '), [0, null]])
  })

  test('the database stays with the server, and stops with it', async () => {
    expect(await databaseOf(cwd)).toBe(database)
    const { code } = await server.end('SIGTERM')
    expect(code).toBe(0)
    expect(await databaseOf(cwd)).toBeUndefined()
  })
})

describe('without a server', () => {
  test('a command starts the database, and stops it', async () => {
    const { code, stdout } = await cellkeep(['account', 'list'])
    expect([code, stdout[1]]).toEqual([0, expect.stringContaining('ada')])
    expect(await databaseOf(cwd)).toBeUndefined()
  })

  test('a signal while it waits for a password leaves no database behind', async () => {
    const child = spawn(process.execPath, [entry, 'account', 'set-password', 'ada'], {
      cwd,
      stdio: ['pipe', 'ignore', 'inherit'],
    })
    const ended = once(child, 'exit')
    await expect.poll(() => databaseOf(cwd)).toBeDefined()
    // Any earlier, the signal might have to wait until the database is open.
    child.kill('SIGTERM')
    expect(await ended).toEqual([143, null])
    expect(await databaseOf(cwd)).toBeUndefined()
  })

  test('a backup comes back in another place, with its people but not their cookies', async () => {
    const other = await space.make('other')
    expect(await cellkeep(['restore', join(cwd, 'all.ckb')], '', other)).toMatchObject({
      code: 0,
      stderr: '',
    })
    const server = await startServer(other)
    await signIn(server, 'ada')
    expect(await readdir(join(other, '.cellkeep'))).not.toContain('bootstrap_token')
    expect((await server.end('SIGTERM')).code).toBe(0)
  })
})
