import { execFile, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, openSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Said, shell } from '../../test/helpers/shell.ts'
import { sql } from '../db/db.ts'
import { migrate } from '../db/migration/migrate.ts'
import { migrationNames } from '../db/migration/steps.ts'
import { testService } from '../testing/index.ts'
import { version } from '../wire/version.ts'

const program = fileURLToPath(new URL('../../bin/cellkeep.js', import.meta.url))
let cwd: string
let cellkeep: (args: readonly string[], input?: string) => Promise<Said>
beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'ck-main-'))
  // No test here may get as far as connecting to this server.
  cellkeep = shell({ CELLKEEP_DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' }, cwd)
})
afterAll(() => rm(cwd, { recursive: true }))

describe('help', () => {
  it('names every command, on one screen of 100 columns or a little more', async () => {
    const { code, stdout } = await cellkeep(['help'])
    expect(code).toBe(0)
    expect(await cellkeep([])).toEqual({ code, stdout, stderr: '' })
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThan(130)
    const named = [...stdout.matchAll(/^ {2}([a-z-]+) {2,}[A-Z]/gm)].map(([, name = '']) => name)
    expect(named).toEqual(expect.arrayContaining(['start', 'account', 'invite', 'role', 'doctor', 'restore']))
    for (const name of named) {
      const own = await cellkeep(['help', name])
      expect([own.code, own.stdout]).toEqual([0, expect.stringContaining(`cellkeep ${name}`)])
      expect(await cellkeep([name, '--help'])).toEqual(own)
      // Only a group has words of its own.
      if (own.stdout.includes('\nUsage: ')) continue
      for (const [, word = ''] of own.stdout.matchAll(
        new RegExp(`^ {2}cellkeep ${name} ([a-z-]+)(?= |$)`, 'gm'),
      ))
        expect((await cellkeep(['help', name, word])).stdout).toContain(`Usage: cellkeep ${name} ${word}`)
    }
  })

  it('shows commands that exist', async () => {
    const { stdout } = await cellkeep(['help'])
    for (const [, line = ''] of stdout.matchAll(/^ {2}cellkeep (\S+ \S+)/gm)) {
      const [name = '', word = ''] = line.trim().split(' ')
      const { code } = await cellkeep(['help', name, ...(/^[a-z]/.test(word) ? [word] : [])])
      expect([line, code]).toEqual([line, 0])
    }
  })
})

it('a working directory that was removed is told in one sentence', () => {
  const script = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" "$@"'
  const run = (...args: string[]) =>
    spawnSync('/bin/sh', ['-c', script, process.execPath, program, ...args], { cwd, encoding: 'utf8' })
  const message = 'The working directory does not exist any more. Change to another one.'
  const { status, stderr } = run('doctor')
  expect([status, stderr]).toEqual([1, `${message}\n`])
  expect(JSON.parse(run('doctor', '--json').stderr)).toEqual({ reason: 'no_working_directory', message })
})

it('the version is printed without the rest of the product', async () => {
  const hooks = `import { registerHooks } from 'node:module'
    let count = 0
    registerHooks({ load: (url, context, next) => (url.startsWith('file:') && count++, next(url, context)) })
    process.on('exit', () => console.error(count))`
  const args = ['--import', `data:text/javascript,${encodeURIComponent(hooks)}`, program]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [...args, '--version'])
  expect(stdout).toBe(`${version}\n`)
  expect(Number(stderr)).toBeGreaterThan(0)
  expect(Number(stderr)).toBeLessThan(10)
})

describe('wrong usage is exit code 2 and says how it goes', () => {
  it.each([
    [['account', 'create'], /--username.*\nUsage: cellkeep account create --username NAME/],
    [['account', 'show'], /missing.*\nUsage: cellkeep account show REF/],
    [['start', '--port', '80'], /no options.*CELLKEEP_PORT.*\nUsage: cellkeep start\n/],
    [['account', 'show', 'a', 'b'], /Too many/],
    [['account', 'show', 'a', '--nothing'], /--nothing/],
    [['account', 'set-email', 'a'], /--none/],
    [['account', 'set-email', 'a', 'b@c.d', '--none'], /--none/],
    [['account', 'nothing'], /no command "account nothing"/],
    [['account'], /Usage: cellkeep account create/],
    [['session', 'revoke-all'], /--everyone/],
    [['session', 'revoke-all', 'a', '--everyone'], /--everyone/],
    [['settings', 'set', 'open_signup', 'yes'], /true or false/],
    [['nothing'], /no command "nothing"/],
    [['help', 'nothing'], /no command "nothing"/],
    [['backup'], /Usage: cellkeep backup FILE/],
    [['restore', 'nothing'], /^\/.*\/nothing does not exist. Name the file of a backup\.\n$/],
    [['restore', 'nothing', '--verify'], /^\/.*\/nothing does not exist/],
    [['restore', 'nothing', '--verify', '--into', 'mysql://x'], /^--into must be a postgres:/],
    [['role', 'assign', 'a', 'editor', '--scope-kind', '', '--scope-id', ''], /^--scope-kind is empty/],
    [['nodes', 'wait', '--ready', '0x1'], /^--ready takes/],
    [['nodes', 'wait', '--ready', '1', '--timeout', ' '], /^--timeout takes/],
    [['tail', '--after', ' '], /^--after takes/],
    [['login', '--days', '1e2'], /^--days takes/],
    [['backup', 'x', '--max-rate', '0x10'], /^--max-rate takes/],
    [['doctor', '--deep', '--sample', ' 5'], /^--sample takes/],
    [['audit', 'export', '--account='], /^--account is empty\. Give it a value, or leave it out/],
  ])('%j', async (args, said) => {
    const { code, stdout, stderr } = await cellkeep(args)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(said)
  })
})

describe.runIf(existsSync('/dev/full'))('output that finds no room', () => {
  const intoFull = (...args: string[]) => {
    const full = openSync('/dev/full', 'w')
    const { status, stderr } = spawnSync(process.execPath, [program, ...args], {
      stdio: ['ignore', full, 'pipe'],
    })
    closeSync(full)
    return [status, String(stderr)]
  }

  it('is exit code 1, even for its last line', () => {
    expect(intoFull('--version')).toEqual([1, expect.stringContaining('could not be written')])
  })

  it('is told as one object with --json', () => {
    const [status, stderr] = intoFull('keys', 'generate', '--json')
    expect([status, JSON.parse(String(stderr))]).toEqual([
      1,
      { reason: 'output_unwritable', message: expect.stringContaining('ENOSPC') },
    ])
  })
})

it.runIf(existsSync('/dev/full'))(
  'a backup that nobody reads to its end, or that found no room, says so once',
  async () => {
    const { databaseUrl, close } = await testService()
    const run = (to: string) =>
      promisify(execFile)('/bin/sh', ['-c', `"$@" ${to}`, 'sh', process.execPath, program, 'backup', '-'], {
        env: { ...process.env, CELLKEEP_DATABASE_URL: databaseUrl },
      })
    await expect(run('>/dev/full')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^The output could not be written: ENOSPC[^\n]*\n$/),
    })
    expect((await run('| true')).stderr).toMatch(/^The output cannot be written: [^\n]*EPIPE[^\n]*\n$/)
    await close()
  },
)

it.runIf(existsSync('/dev/full'))(
  'an export that nobody reads, or that found no room, tells no last row to go on from',
  async () => {
    const test = await testService()
    await test.account()
    const run = (to: string) =>
      promisify(execFile)(
        '/bin/sh',
        ['-c', `"$@" ${to}`, 'sh', process.execPath, program, 'audit', 'export'],
        {
          cwd,
          env: { ...process.env, CELLKEEP_DATABASE_URL: test.databaseUrl },
        },
      )
    expect((await run('| cat')).stderr).toMatch(/^\{"rows":\d+,"last_seq":\d+\}\n$/)
    expect((await run('| true')).stderr).toBe('')
    await expect(run('>/dev/full')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^The output could not be written: ENOSPC[^\n]*\n$/),
    })
  },
)

describe('with --json whatever ends a command is one object on standard error', () => {
  const absent = {
    CELLKEEP_DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
    CELLKEEP_COOKIE_KEYS: 'k'.repeat(43),
  }
  it.each([
    [['account', 'list'], absent, 3, { reason: 'db_unreachable' }],
    [['account', 'list'], { CELLKEEP_DATABASE_URL: 'mysql://x' }, 78, { reason: 'configuration' }],
    [['account', 'show'], {}, 2, { reason: 'wrong_usage', usage: ['cellkeep account show REF'] }],
    [['settings'], {}, 2, { reason: 'wrong_usage', message: 'A command word is missing.' }],
    [['config', 'check'], {}, 2, { reason: 'wrong_usage', message: 'Too many arguments.' }],
    [['acount'], {}, 2, { reason: 'wrong_usage', message: expect.stringContaining('mean account?') }],
    [['account', 'shwo'], {}, 2, { reason: 'wrong_usage', message: expect.stringContaining('mean show?') }],
  ] as const)('%j', async (words, env, code, error) => {
    const said = await shell(env, cwd)([...words, '--json'])
    expect([said.code, said.stdout]).toEqual([code, ''])
    expect(JSON.parse(said.stderr)).toMatchObject({ message: expect.stringMatching(/./), ...error })
  })
})

it('migrate status tells the rows of a step, and how many there are if that was estimated', async () => {
  const test = await testService()
  const { db } = test.service.app
  const at = shell({ CELLKEEP_DATABASE_URL: test.databaseUrl }, cwd)
  const shown = async (total: number | null) => {
    await db.run(sql`
      update schema_migration set state = 'running', done_rows = 500, total_rows = ${total}::bigint
      where name = '0031_fill_grant_paths'`)
    return (await at(['migrate', 'status'])).stdout.split('\n')[1]
  }
  const step = '0031_fill_grant_paths  backfill  interrupted '
  expect(await shown(2000)).toBe(`${step} 500 of about 2000 rows`)
  for (const unknown of [0, null]) expect(await shown(unknown)).toBe(`${step} 500 rows`)
  await test.close()
})

describe('exit code 3', () => {
  it('a schema that is not this version’s: nothing is written', async () => {
    const old = await testService()
    const at = shell({ CELLKEEP_DATABASE_URL: old.databaseUrl }, cwd)
    const { db } = old.service.app
    await db.run(sql`drop schema cellkeep cascade`)
    const steps = migrationNames()
    const only = steps.slice(0, steps.indexOf('0024_backup_record'))
    await migrate({ connectionString: old.databaseUrl, schema: 'cellkeep' }, { only })
    const { code, stderr } = await at(['settings', 'set', 'open_signup', 'true'])
    expect(code).toBe(3)
    expect(stderr).toMatch(/cellkeep migrate/)
    expect(await db.rows(sql`select from audit_log`)).toEqual([])
    expect(await db.one(sql`select open_signup from app_settings`)).toEqual({ open_signup: false })
    expect((await at(['migrate', '--check'])).code).toBe(3)
    expect(await at(['migrate'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^applied \d{4}_/) })
    // It reports nothing about the steps after that, which may be pending.
    expect((await at(['migrate', '--to', '0018'])).stdout).toBe(
      '0018_nodes and all steps before it are already done.\n',
    )
    expect(await at(['migrate', '--to', '9999'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        `migrate plan\` lists those that are pending, and the last step is ${steps.at(-1)}.`,
      ),
    })
    expect(await at(['migrate', '--check'])).toMatchObject({ code: 0, stdout: 'The schema is current.\n' })
    await old.close()
  })

  it('no database', async () => {
    const CELLKEEP_DATABASE_URL = 'postgres://nobody@127.0.0.1:1/none'
    const at = shell({ CELLKEEP_DATABASE_URL, CELLKEEP_COOKIE_KEYS: 'k'.repeat(43) }, cwd)
    for (const words of [['account', 'list'], ['doctor'], ['backup', 'x'], ['migrate']]) {
      const { code, stderr } = await at(words)
      expect([words, code]).toEqual([words, 3])
      expect(stderr).toMatch(/cannot be reached/)
    }
  })

  it('a server that refuses the connection: what to mend is named', async () => {
    const test = await testService()
    const absent = new URL(test.databaseUrl)
    absent.pathname = '/nothing'
    for (const [url, remedy] of [
      [absent.href, /"nothing" does not exist\. Create the database, or correct its name in the URL\.\n$/],
      ['postgres://nobody@nothing.invalid/none', /Check the host in the URL\.\n$/],
    ] as const) {
      const { code, stderr } = await shell({ CELLKEEP_DATABASE_URL: url }, cwd)(['account', 'list'])
      expect([code, stderr]).toEqual([3, expect.stringMatching(remedy)])
    }
    await test.close()
  })

  it('a database whose files are missing: no bug is claimed, and the backup is named', async () => {
    const test = await testService()
    // What PostgreSQL reports for a missing file, without removing one from the server that all tests share.
    await test.service.app.db.run(sql`
      create or replace function cellkeep.audit_waiting() returns boolean language plpgsql as $$ begin
        raise exception 'could not open file "base/5/16384"' using errcode = 'undefined_file';
      end $$`)
    const at = shell({ CELLKEEP_DATABASE_URL: test.databaseUrl }, cwd)
    const { code, stderr } = await at(['audit', 'export', '--out', 'none'])
    expect([code, stderr]).toEqual([3, expect.stringMatching(/^The files .*base\/5\/16384.*backup[^\n]*\n$/)])
    expect(JSON.parse((await at(['audit', 'export', '--json'])).stderr)).toMatchObject({
      reason: 'database_damaged',
    })
    expect(await readdir(cwd)).not.toContain('none')
    await test.close()
  })

  it('a role without rights, and a schema that was changed by hand: no bug is claimed', async () => {
    const test = await testService()
    const { db } = test.service.app
    const role = `weak_${randomUUID().slice(0, 8)}`
    await db.run(sql`create role ${sql.raw(role)} login`)
    await db.run(sql`grant usage on schema cellkeep to ${sql.raw(role)}`)
    const weak = new URL(test.databaseUrl)
    weak.username = role
    const ended = async (url: string, ...args: string[]) => {
      const { code, stderr } = await shell({ CELLKEEP_DATABASE_URL: url }, cwd)([...args, '--json'])
      return [code, JSON.parse(stderr).reason]
    }
    expect(await ended(weak.href, 'account', 'list')).toEqual([3, 'db_permission_denied'])
    expect(await ended(weak.href, 'doctor')).toEqual([3, 'db_permission_denied'])
    await db.run(sql`alter table invite rename column claimed_at to claimed`)
    expect(await ended(test.databaseUrl, 'invite', 'list')).toEqual([3, 'schema_drift'])
    await db.run(sql`drop owned by ${sql.raw(role)}`)
    await db.run(sql`drop role ${sql.raw(role)}`)
    await test.close()
  })

  it('no embedded database yet: none is made by looking', async () => {
    const empty = await mkdtemp(join(tmpdir(), 'ck-none-'))
    const { code, stderr } = await shell({}, empty)(['account', 'list'])
    expect(code).toBe(3)
    expect(stderr).toMatch(/cellkeep start/)
    await rm(empty, { recursive: true })
  })

  const isRoot = process.getuid?.() === 0
  type Making = (dir: string) => Promise<void>
  it.each<[string, Making]>([
    ['of links in a circle', (dir) => symlink(dir, dir)],
    // Root may enter every directory.
    ...(isRoot ? [] : [['that may not be entered', (dir) => mkdir(dir, 0)] as [string, Making]]),
  ])('a data directory %s is not said to hold no database', async (name, make) => {
    const dir = join(cwd, name.replaceAll(' ', '-'))
    await make(dir)
    const { code, stderr } = await shell({ CELLKEEP_DATA_DIR: dir }, cwd)(['account', 'list'])
    expect([code, stderr]).toEqual([
      78,
      expect.stringMatching(/cannot be used: .*(ELOOP|may not write there)/),
    ])
  })
})

it('configuration that breaks a rule is exit code 78', async () => {
  const { code, stderr } = await shell({ CELLKEEP_DATABASE_URL: 'mysql://x' }, cwd)(['account', 'list'])
  expect(code).toBe(78)
  expect(stderr).toMatch(/CELLKEEP_DATABASE_URL/)
})
