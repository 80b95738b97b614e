import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { createSessionCookie } from '../../src/auth/cookie.ts'
import { createKeyRing } from '../../src/auth/key-ring.ts'
import { toUrl } from '../../src/testing/cluster.ts'
import { balancer } from '../helpers/balancer.ts'
import { ownLocks } from '../helpers/own-locks.ts'
import { ownPostgres } from '../helpers/own-postgres.ts'
import { postgresProxy } from '../helpers/postgres-proxy.ts'
import { type Environment, firstAccount, startServer, workspace } from '../helpers/server-process.ts'
import { shell } from '../helpers/shell.ts'
import { openSocket } from '../helpers/sockets.ts'

const space = await workspace()
afterAll(() => space.remove())
let count = 0

async function start(env: Environment, name: string) {
  const cwd = await space.make(`node-${++count}`)
  const server = await startServer(cwd, { CELLKEEP_COOKIE_SECURE: 'false', CELLKEEP_NODE_NAME: name, ...env })
  onTestFinished(async () => void (await server.end('SIGKILL')))
  return server
}

const post = (url: string, path: string, body: object, cookie = '') =>
  fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(cookie && { cookie }) },
    body: JSON.stringify(body),
  })
// biome-ignore lint/suspicious/noExplicitAny: of whatever the server answers
type Body = Record<string, any>
const json = async (answer: Response): Promise<Body> => (await answer.json()) as Body
const call = (url: string, cookie: string, method: string, params: object = {}) =>
  post(url, '/api/rpc', { jsonrpc: '2.0', id: 1, method, params }, cookie)

/** Creates the first account; resolves to its session cookie. */
async function bootstrapped({ url, cwd }: { url: string; cwd: string }): Promise<string> {
  const token = (await readFile(join(cwd, '.cellkeep', 'bootstrap_token'), 'utf8')).trim()
  const made = await post(url, '/api/account/bootstrap', { token, ...firstAccount })
  return made.headers.getSetCookie()[0]?.split(';', 1)[0] as string
}

test('nodes are restarted and drained one by one behind a balancer: no call fails, connections go to another', async () => {
  const own = await ownPostgres()
  const env = { ...own.env, CELLKEEP_SHUTDOWN_DELAY_MS: '1000', CELLKEEP_LIMIT_CELL_CREATE: 'off' }
  const cellkeep = shell(env, '/')
  const ready = async (wanted: number) =>
    expect((await cellkeep(['nodes', 'wait', '--ready', String(wanted)])).code).toBe(0)
  const { url, nodes, isUp } = await balancer()
  const servers = new Map([
    ['web-1', await start(env, 'web-1')],
    ['web-2', await start(env, 'web-2')],
  ])
  const serverOf = (name: string) => servers.get(name) as Awaited<ReturnType<typeof start>>
  for (const { url } of servers.values()) nodes.add(url)
  await expect.poll(() => [...nodes].every(isUp)).toBe(true)
  await ready(2)
  const cookie = await bootstrapped(serverOf('web-1'))

  const load = { failed: [] as unknown[], done: 0, isOver: false }
  const writers = Array.from({ length: 4 }, async () => {
    while (!load.isOver) {
      const answer = await call(url, cookie, 'cell_create', { data: { n: load.done } }).catch(
        (error) => error,
      )
      const { result, error }: Body = answer instanceof Response ? await json(answer) : { error: answer }
      if (result) load.done++
      else load.failed.push(error)
      await delay(30)
    }
  })
  /** Opens a socket and a stream on this node; the returned function resolves to how they ended. */
  const connections = async (name: string) => {
    const socket = await openSocket(serverOf(name).url, { cookie })
    const stream = await fetch(`${serverOf(name).url}/api/account/audit/stream`, { headers: { cookie } })
    const text = stream.text()
    return async () => [(await socket.closed).code, /"shutdown"/.test(await text)]
  }

  for (const name of ['web-1', 'web-2']) {
    const ends = await connections(name)
    const { url: old } = serverOf(name)
    expect((await serverOf(name).end('SIGTERM')).code).toBe(0)
    expect(await ends()).toEqual([1001, true])
    await ready(1)
    nodes.delete(old)
    servers.set(name, await start(env, name))
    nodes.add(serverOf(name).url)
    await ready(2)
    await expect.poll(() => isUp(serverOf(name).url)).toBe(true)
  }

  const ends = await connections('web-1')
  expect((await cellkeep(['nodes', 'drain', 'web-1', '--wait'])).code).toBe(0)
  expect(await ends()).toEqual([1001, true])
  expect(isUp(serverOf('web-1').url)).toBe(false)
  const through = await openSocket(url, { cookie })
  expect(await through.call('account_verify')).toHaveProperty('result')
  await through.close()
  expect((await call(serverOf('web-1').url, cookie, 'account_verify')).status).toBe(200)
  expect((await cellkeep(['nodes', 'resume', 'web-1'])).code).toBe(0)
  await expect.poll(() => isUp(serverOf('web-1').url)).toBe(true)

  const { done } = load
  await expect.poll(() => load.done).toBeGreaterThan(done)
  load.isOver = true
  await Promise.all(writers)
  expect(load.failed).toEqual([])
  const client = await own.open()
  expect((await client.query('select count(*)::int as cells from cell')).rows).toEqual([{ cells: load.done }])

  // A node that hangs no longer reports itself, and the frame shows that.
  serverOf('web-2').signal('SIGSTOP')
  await client.query(`update node set seen_at = seen_at - interval '15 seconds' where name = 'web-2'`)
  const frame = JSON.parse((await cellkeep(['top', '--json'])).stdout)
  const states = frame.nodes.map((one: { name: string; alive: boolean; marks: string[] }) => [
    one.name,
    one.alive,
    one.marks,
  ])
  expect(states).toEqual([
    ['web-1', true, []],
    ['web-2', false, ['silent']],
  ])
  serverOf('web-2').signal('SIGCONT')
  await ready(2)
  // A killed node stays in the table, silent; a stopped one is removed.
  await serverOf('web-2').end('SIGKILL')
  await serverOf('web-1').end('SIGTERM')
  expect((await client.query('select name from node')).rows).toEqual([{ name: 'web-2' }])
})

/** A module that shifts the clock of its process. */
async function shiftedClock(minutes: number): Promise<string> {
  const path = join(await space.make(`clock-${++count}`), 'clock.mjs')
  await writeFile(
    path,
    `const Real = Date
const shift = ${minutes * 60_000}
globalThis.Date = class extends Real {
  constructor(...given) {
    super(...(given.length > 0 ? given : [Real.now() + shift]))
  }
  static now() {
    return Real.now() + shift
  }
}`,
  )
  return `--import ${pathToFileURL(path)}`
}

test('clocks ten minutes wrong in both directions change nothing about what is valid and what is over', async () => {
  const own = await ownPostgres()
  const env = { ...own.env, CELLKEEP_LIMIT_STORE: 'postgres', CELLKEEP_LIMIT_LOGIN_ACCOUNT: '2/900' }
  const ahead = await start({ ...env, NODE_OPTIONS: await shiftedClock(10) }, 'ahead')
  const behind = await start({ ...env, NODE_OPTIONS: await shiftedClock(-10) }, 'behind')
  const client = await own.open()
  const inMinutes = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString()

  const token = (await bootstrapped(ahead)).split(/[=.]/)[1] as string
  await client.query(`update auth_session set expires_at = now() + interval '5 minutes' where id = $1`, [
    createHash('sha256').update(token).digest('hex'),
  ])
  const cookies = createSessionCookie(createKeyRing([own.env.CELLKEEP_COOKIE_KEYS as string]), {
    secure: false,
    hostPrefix: false,
  })
  const until = (minutes: number) => cookies.issue(token, inMinutes(minutes)).split(';', 1)[0] as string
  for (const { url } of [ahead, behind]) {
    expect((await call(url, until(5), 'account_verify')).status).toBe(200)
    expect((await call(url, until(-5), 'account_verify')).status).toBe(401)
    const socket = await openSocket(url, { cookie: until(5) })
    expect(await socket.call('account_verify')).toHaveProperty('result')
    expect(socket.ws.readyState).toBe(socket.ws.OPEN)
    const invite = (minutes: number) =>
      call(url, until(5), 'invite_create', {
        email: `${new URL(url).port}@example.org`,
        expires_at: inMinutes(minutes),
      })
    expect((await json(await invite(-5))).error.data).toMatchObject({ reason: 'invalid_params' })
    expect((await invite(5)).status).toBe(200)
    const { warnings } = await json(await fetch(`${url}/health/ready`))
    expect(warnings).toContain('clock_skew')
    await socket.close()
  }

  const wrong = async ({ url }: { url: string }) =>
    (await post(url, '/api/account/login', { username: 'ada', password: 'wrong wrong wrong' })).status
  expect([await wrong(ahead), await wrong(behind), await wrong(ahead), await wrong(behind)]).toEqual([
    401, 401, 429, 429,
  ])

  const { rows } = await client.query(
    `select name, round((info->>'skew_ms')::numeric / 60000)::int as minutes from node order by name`,
  )
  expect(rows).toEqual([
    { name: 'ahead', minutes: 10 },
    { name: 'behind', minutes: -10 },
  ])
})

test('a node that stands still in the middle of its periodic work leaves it to another', async () => {
  const own = await ownPostgres()
  const db = await own.open()
  const frozen = await start({ ...own.env, CELLKEEP_CLEANUP_INTERVAL_S: '10' }, 'frozen')
  await db.query('begin; lock table auth_session in access exclusive mode')
  const waiting = async () =>
    (await db.query(`select from ${ownLocks} l where relation = 'auth_session'::regclass and not granted`))
      .rowCount
  await expect.poll(waiting).toBe(1)
  frozen.signal('SIGSTOP')
  await db.query('commit')
  const cellkeep = shell(own.env, frozen.cwd)
  const cleaned = async () => JSON.parse((await cellkeep(['cleanup', '--json'])).stdout).ran
  expect(await cleaned()).toBe(false)
  const holders = async () =>
    (
      await db.query(
        `select from pg_stat_activity where datname = current_database() and application_name = 'cellkeep cleanup'`,
      )
    ).rowCount
  await expect.poll(holders).toBe(0)
  expect(await cleaned()).toBe(true)
  frozen.signal('SIGCONT')
  expect((await frozen.end('SIGTERM')).code).toBe(0)
})

test('a stop ends in time while the database is silent or away, and a second signal ends it at once', async () => {
  const own = await ownPostgres()
  for (const how of ['silent', 'away', 'silent, twice'] as const) {
    let isSilent = false
    const wires = new Set<Socket>()
    const database = await postgresProxy({ connectionString: own.env.CELLKEEP_DATABASE_URL }, (near, far) => {
      wires.add(near)
      near.on('data', (chunk) => isSilent || far.write(chunk))
      far.pipe(near)
    })
    const CELLKEEP_DATABASE_URL = toUrl(database.connection)
    const server = await start(
      { ...own.env, CELLKEEP_DATABASE_URL, CELLKEEP_SHUTDOWN_TIMEOUT_MS: '2000' },
      'one',
    )
    isSilent = how !== 'away'
    if (how === 'away') {
      for (const wire of wires) wire.destroy()
      await database.close()
    }
    const begun = performance.now()
    server.signal('SIGTERM')
    if (how === 'silent, twice') {
      await server.logged('stopping')
      server.signal('SIGTERM')
    }
    const { code } = await server.ended
    expect([how, code]).toEqual([how, how === 'silent, twice' ? 1 : expect.any(Number)])
    expect(performance.now() - begun).toBeLessThan(15_000)
    if (how !== 'away') await database.close()
  }
})
