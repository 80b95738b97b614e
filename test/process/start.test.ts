import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { emptyDatabase } from '../fresh-database.ts'
import { ownPostgres } from '../helpers/own-postgres.ts'
import {
  bootstrap,
  databaseOf,
  firstAccount,
  runCellkeep,
  type ServerProcess,
  startServer,
  workspace,
} from '../helpers/server-process.ts'

const space = await workspace()
afterAll(() => space.remove())

describe('an empty directory without any variable', () => {
  let cwd: string
  let server: ServerProcess
  beforeAll(async () => {
    cwd = await space.make('empty')
    server = await startServer(cwd)
  })
  afterAll(() => server.end('SIGKILL'))

  test('the first answer comes from a service that is ready', async () => {
    const answers = await Promise.all(
      ['/health', '/ready', '/api/account/status'].map(async (path) => {
        const response = await fetch(server.url + path)
        return [response.status, await response.json()]
      }),
    )
    expect(answers).toEqual([
      [200, { status: 'ok' }],
      [200, { ready: true }],
      [401, { error: 'authentication_required', bootstrap_available: true }],
    ])
  })

  test('the start message names the token file, and shows the token nowhere', async () => {
    const path = join(cwd, '.cellkeep', 'bootstrap_token')
    const token = (await readFile(path, 'utf8')).trim()
    expect(token.length).toBeGreaterThan(40)
    expect(server.stderr()).toContain(path)
    expect(server.stderr()).toContain(join(cwd, '.cellkeep'))
    expect(server.stderr()).toContain('CELLKEEP_COOKIE_SECURE=false')
    expect(server.stderr() + JSON.stringify(server.log())).not.toContain(token)
  })

  test('standard output holds JSON lines only, each with time, level and message', async () => {
    await server.logged('started')
    for (const line of server.log())
      expect(line).toMatchObject({
        time: expect.stringMatching(/^\d{4}-.*Z$/),
        level: expect.any(String),
        msg: expect.any(String),
      })
  })

  test('it serves in production mode and logs the settings in force', async () => {
    const { settings, version } = await server.logged('started')
    expect(settings).toMatchObject({ env: 'production', host: '127.0.0.1', data_dir: join(cwd, '.cellkeep') })
    const { version: current } = JSON.parse(await readFile('package.json', 'utf8'))
    expect(version).toBe(current)
  })

  test('files in the data dir are for their owner alone', async () => {
    const mode = async (name: string) =>
      ((await stat(join(cwd, '.cellkeep', name))).mode & 0o7777).toString(8)
    expect(await mode('.')).toBe(process.getuid?.() === 0 ? '711' : '700')
    expect(await mode('db')).toBe('700')
    expect(await mode('cookie_keys')).toBe('600')
    expect(await mode('bootstrap_token')).toBe('600')
  })

  test('a second start on the data dir ends with 75 and names the process that holds it', async () => {
    const second = await runCellkeep(cwd, ['start'], { CELLKEEP_PORT: '0' })
    expect(second.code).toBe(75)
    expect(second.stderr).toContain(`process ${server.pid}`)
    expect(second.stderr.trim().split('\n')).toHaveLength(1)
    expect((await fetch(`${server.url}/ready`)).status).toBe(200)
  })

  test('another start on its port ends with one sentence that says what to do', async () => {
    const { port } = new URL(server.url)
    const second = await runCellkeep(await space.make('other'), ['start'], {
      ...(await ownPostgres()).env,
      CELLKEEP_PORT: port,
    })
    expect(second.code).toBe(1)
    expect(second.stderr).toBe(
      `Cannot listen on 127.0.0.1:${port}: another process already listens there. Stop it, or set CELLKEEP_PORT to another port.\n`,
    )
  })
})

const lowest =
  process.platform === 'linux' ? readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8') : '0'
test.runIf(Number(lowest) > 81)('a port that needs a right is a mistake of the configuration', async () => {
  const drop = process.getuid?.() === 0 ? 'setpriv --bounding-set=-net_bind_service' : ''
  const env = { ...(await ownPostgres()).env, CELLKEEP_PORT: '81' }
  const shell = `exec ${drop} "$@"`
  const ended = await runCellkeep(await space.make('low'), ['start'], env, '', undefined, shell)
  expect(ended.code).toBe(78)
  expect(ended.stderr).toMatch(/^Cannot listen on 127.0.0.1:81: .* a port above 1023\.\n$/)
})

test('a restart keeps accounts, sessions and the key, and leaves no process and no port', async () => {
  const cwd = await space.furnished('restart')
  const first = await startServer(cwd)
  await bootstrap(first)
  const keys = await readFile(join(cwd, '.cellkeep', 'cookie_keys'), 'utf8')
  const session = await signIn(first.url)
  const { cell } = await first.client.cell_create({ data: { label: 'kept' } })
  const { code } = await first.end('SIGTERM')
  expect(code).toBe(0)
  expect(await databaseOf(cwd)).toBeUndefined()
  await expect(fetch(first.url)).rejects.toThrow()

  const second = await startServer(cwd)
  expect(second.stderr()).not.toContain('bootstrap_token')
  const reply = await fetch(`${second.url}/api/account/verify`, { headers: { cookie: session } })
  expect(reply.status).toBe(200)
  await second.client.account.login(firstAccount)
  expect(await second.client.cell_get({ id: cell.id })).toMatchObject({ cell: { data: { label: 'kept' } } })
  expect(await readFile(join(cwd, '.cellkeep', 'cookie_keys'), 'utf8')).toBe(keys)
  expect((await second.end('SIGHUP')).code).toBe(0)
  expect(await databaseOf(cwd)).toBeUndefined()
})

test('every problem of a configuration is listed at once, with exit code 78 and no secret', async () => {
  const cwd = await space.make('broken')
  const key = 'a-secret-key-that-nobody-may-see'
  const ended = await runCellkeep(cwd, ['start'], {
    CELLKEEP_PORT: 'tcp://10.0.0.1:80',
    CELLKEEP_HOST: '0.0.0.0',
    CELLKEEP_DATABASE_URL: 'postgres://user:opensesame@localhost/db',
    CELLKEEP_COOKIE_KEYS: `${key},${key}`,
  })
  expect(ended.code).toBe(78)
  for (const name of ['CELLKEEP_PORT', 'CELLKEEP_ALLOWED_ORIGINS', 'CELLKEEP_COOKIE_KEYS'])
    expect(ended.stderr).toContain(name)
  expect(ended.stderr + ended.stdout.join()).not.toMatch(/opensesame|nobody-may-see/)
})

test('on a PostgreSQL of its own it serves the same, and logs secrets as ***', async () => {
  const cwd = await space.make('postgres')
  const { env } = await ownPostgres(emptyDatabase)
  const server = await startServer(cwd, env)
  const { settings } = await server.logged('started')
  expect(settings).toMatchObject({ cookie_keys: '***', database_url: '***' })
  await bootstrap(server)
  expect(await server.client.account_verify()).toMatchObject({ username: firstAccount.username })
  const { code, stdout, stderr } = await server.end('SIGTERM')
  expect(code).toBe(0)
  for (const secret of Object.values(env)) expect(stdout.join('\n') + stderr).not.toContain(secret)
  expect(await readdir(join(cwd, '.cellkeep'))).toEqual([])
})

test('a public URL is where the start message sends people', async () => {
  const site = { CELLKEEP_PUBLIC_URL: 'https://id.example' }
  const server = await startServer(await space.make('public'), { ...(await ownPostgres()).env, ...site })
  await expect.poll(server.stderr).toContain('console: https://id.example/admin\n')
  expect(server.stderr()).toContain(' https://id.example/setup\n')
  expect(server.stderr()).toContain(`curl ${server.url}/api/account/bootstrap`)
  await server.end('SIGKILL')
})

test('the command of the start message reads the token from whatever directory', async () => {
  const cwd = await space.make(`it's "here"`)
  const server = await startServer(cwd, (await ownPostgres()).env)
  await expect.poll(server.stderr).toContain('choose a long one')
  const [, reading] = /\$\((cat .*?)\)\\"/.exec(server.stderr()) ?? []
  const { stdout } = await promisify(execFile)('sh', ['-c', reading as string])
  expect(stdout).toBe(await readFile(join(cwd, '.cellkeep', 'bootstrap_token'), 'utf8'))
  await server.end('SIGKILL')
})

test('SIGUSR1 opens no debugger', async () => {
  const server = await startServer(await space.make('signalled'), (await ownPostgres()).env)
  server.signal('SIGUSR1')
  await expect.poll(() => server.stderr() + JSON.stringify(server.log())).toMatch(/Debugger|SIGUSR1/)
  const { stderr, stdout } = await server.end('SIGTERM')
  expect(stderr).not.toContain('Debugger')
  expect(stdout.join()).toContain('SIGUSR1 is ignored')
})

test('a database that cannot be reached is reported in one sentence', async () => {
  const cwd = await space.make('unreachable')
  const closed = await closedPort()
  const ended = await runCellkeep(cwd, ['start'], {
    CELLKEEP_DATABASE_URL: `postgres://127.0.0.1:${closed}/cellkeep`,
    CELLKEEP_COOKIE_KEYS: 'x'.repeat(43),
  })
  expect(ended.code).toBe(3)
  expect(ended.stderr).toMatch(/^The database cannot be reached: .*\n$/)
})

async function signIn(url: string): Promise<string> {
  const response = await fetch(`${url}/api/account/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(firstAccount),
  })
  return response.headers.getSetCookie()[0]?.split(';')[0] ?? ''
}

/** A port that was free a moment ago. */
async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

const unnamed = ['--user', '--map-user=54321']
const isUnnamedPossible = spawnSync('unshare', [...unnamed, 'true']).status === 0

test.runIf(isUnnamedPossible)('a user without a name is told that PostgreSQL needs one', async () => {
  const cwd = await space.make('unnamed')
  const program = fileURLToPath(new URL('../../bin/cellkeep.js', import.meta.url))
  const { status, stderr } = spawnSync('unshare', [...unnamed, process.execPath, program, 'start'], { cwd })
  expect([status, String(stderr)]).toEqual([78, expect.stringContaining('Add a line for it to /etc/passwd')])
})
