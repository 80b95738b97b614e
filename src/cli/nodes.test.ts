import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { postgresProxy } from '../../test/helpers/postgres-proxy.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { shell } from '../../test/helpers/shell.ts'
import { sql } from '../db/db.ts'
import { execute } from './main.ts'

const test = await serviceForFile({ node_name: 'web-1' })
await test.service.join()
const env = { CELLKEEP_DATABASE_URL: test.databaseUrl, CELLKEEP_COOKIE_KEYS: 'k'.repeat(43) }
const cellkeep = shell(env, '/')
const { id } = test.service.app.node
const ghosts = ['a', 'b'].map((letter) => letter.repeat(16))
const plantGhosts = () =>
  test.service.app.db.run(sql`
    insert into node (id, name, version, known_step, pid, started_at, seen_at, state, info)
    select ghost, 'ghost', version, known_step, 1, now(), now(), 'ready', info
    from node, unnest(${ghosts}::text[]) ghost where name = 'web-1'`)
const removeGhosts = () => test.service.app.db.run(sql`delete from node where name = 'ghost'`)

it('nodes are listed for people and for programs', async () => {
  const { code, stdout } = await cellkeep(['nodes'])
  expect(code).toBe(0)
  expect(stdout).toMatch(new RegExp(`^NODE .*MARKS\\n${id} +web-1 .* ready `))
  const { stdout: json } = await cellkeep(['nodes', '--json'])
  expect(JSON.parse(json)).toMatchObject({ id, name: 'web-1', alive: true, marks: [], info: { sockets: 0 } })
  expect((await cellkeep(['help', 'nodes'])).stdout).toMatch(/nodes wait --ready N/)
  expect((await cellkeep(['nodes', 'nothing'])).code).toBe(2)
  expect((await cellkeep(['completion', 'words', '--', 'nodes', ''])).stdout).toBe('wait\ndrain\nresume\n')
})

it('wait returns as soon as so many are ready, and fails in time otherwise', async () => {
  const wait = async (...args: string[]) => {
    const { code, stdout } = await cellkeep(['nodes', 'wait', ...args])
    return [code, stdout]
  }
  expect(await wait('--ready', '1')).toEqual([0, '1 node of 1 ready.\n'])
  expect(await wait('--ready', '2', '--timeout', '0')).toEqual([1, '1 node of 2 ready.\n'])
  expect(await wait('--ready', '1', '--version', '0.0.0', '--timeout', '0')).toEqual([
    1,
    '0 nodes of 1 ready.\n',
  ])
  expect((await wait('--ready', 'x'))[0]).toBe(2)
  const soon = wait('--ready', '3')
  await plantGhosts()
  expect(await soon).toEqual([0, '3 nodes of 3 ready.\n'])
  await removeGhosts()
})

it('wait waits for the database too, until its time is over', async () => {
  let refused = 0
  const { connection, close } = await postgresProxy({ connectionString: test.databaseUrl }, (near, far) => {
    if (refused++ < 2) near.destroy()
    else near.pipe(far).pipe(near)
  })
  const { host, port, user, database } = connection as Record<string, string>
  const wait = shell({ ...env, CELLKEEP_DATABASE_URL: `postgres://${user}@${host}:${port}/${database}` }, '/')
  const late = await wait(['nodes', 'wait', '--ready', '1', '--timeout', '0'])
  expect([late.code, late.stderr]).toEqual([3, expect.stringContaining('cannot be reached')])
  expect(await wait(['nodes', 'wait', '--ready', '1'])).toMatchObject({
    code: 0,
    stdout: '1 node of 1 ready.\n',
  })
  expect(refused).toBeGreaterThan(2)
  await close()
})

it('drain and resume take an id or a name, and refuse a name that several nodes have with their ids', async () => {
  await plantGhosts()
  const refused = await cellkeep(['nodes', 'drain', 'ghost'])
  expect(refused.code).toBe(1)
  for (const ghost of ghosts) expect(refused.stderr).toContain(ghost)
  expect(await cellkeep(['nodes', 'drain', 'nobody'])).toMatchObject({ code: 1 })
  await removeGhosts()
  expect(await cellkeep(['nodes', 'drain', 'WEB-1', '--wait'])).toMatchObject({
    code: 0,
    stdout: `web-1 (${id}) is drained.\n`,
  })
  expect((await cellkeep(['nodes'])).stdout).toMatch(/ drained /)
  expect((await fetch(`${test.url}/health/serving`)).status).toBe(503)
  expect(await cellkeep(['nodes', 'resume', id])).toMatchObject({ code: 0 })
  await expect.poll(async () => (await fetch(`${test.url}/health/serving`)).status).toBe(200)
})

it('waiting for a drain does not report a silent node as drained', async () => {
  await plantGhosts()
  await test.service.app.db.run(
    sql`update node set seen_at = now() - interval '1 minute' where id = ${ghosts[0]}`,
  )
  await test.service.app.db.run(sql`delete from node where id = ${ghosts[1]}`)
  const { code, stdout, stderr } = await cellkeep(['nodes', 'drain', 'ghost', '--wait', '--json'])
  expect([code, stdout, JSON.parse(stderr)]).toEqual([
    1,
    '',
    { reason: 'node_silent', message: expect.stringContaining('has been silent since') },
  ])
  await removeGhosts()
})

it('top shows one frame where there is no terminal', async () => {
  const { code, stdout } = await cellkeep(['top'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/primary .*PostgreSQL \d+.*timeline 0000000\d/)
  expect(stdout).toMatch(new RegExp(`\nNAME .*\nweb-1 +${id} `))
  const json = JSON.parse((await cellkeep(['top', '--json'])).stdout)
  expect(json.cluster).toMatchObject({ is_standby: false, replicas: 0, backlog: expect.any(Number) })
  expect(json.nodes).toMatchObject([{ id, state: 'ready' }])
})

it('values that nodes of other versions do not report are no error', async () => {
  await plantGhosts()
  await test.service.app.db.run(sql`update node set info = '{}' where name = 'ghost'`)
  expect((await cellkeep(['top'])).stdout).toMatch(/ghost +a{16} /)
  expect((await cellkeep(['doctor'])).code).toBeLessThan(2)
  await removeGhosts()
})

it('top at a terminal holds, sorts, drains the node that is named, and ends with q', async () => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  let shown = ''
  const stdout = { isTTY: true, write: (text: string) => (shown = text) }
  const done = execute(['top'], { stdin, stdout, stderr: { write: () => {} }, env, cwd: '/' })
  await expect.poll(() => shown).toMatch(/q quit/)
  stdin.write('s ')
  await expect.poll(() => shown).toMatch(/Held/)
  stdin.write('dweb-2\u007f1')
  await expect.poll(() => shown).toMatch(/Drain which node\? web-1$/)
  stdin.write('\r ')
  await expect.poll(() => test.service.app.node.isDrained).toBe(true)
  stdin.write('dnobody\r')
  await expect.poll(() => shown).toMatch(/There is no node nobody/)
  stdin.write('q')
  expect(await done).toBe(0)
  await cellkeep(['nodes', 'resume', 'web-1'])
})

it('doctor names what nodes do not have in common, and connections that would not suffice', async () => {
  const findings = async () => {
    const { stdout } = await cellkeep(['doctor', '--json'])
    const all = stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
    const ours = /settings|versions|skew|limiter|bus|connections/
    return all.filter(({ finding }) => ours.test(finding)) as { finding: string; what: string }[]
  }
  expect(await findings()).toEqual([])
  await plantGhosts()
  expect((await findings()).map(({ finding }) => finding)).toEqual(['limiter_store_memory'])
  await test.service.app.db.run(sql`
    update node set version = '0.0.1',
      info = info || '{"skew_ms": -5001, "warnings": ["bus_deaf"], "limit_store": "postgres", "settings": {"roles": "0"}}'
        || '{"pool": {"open": 1, "idle": 1, "waiting": 0, "max": 100000}}'
    where id = ${ghosts[0]}`)
  const found = await findings()
  expect(found.map(({ finding }) => finding)).toEqual([
    'settings_differ',
    'versions_differ',
    'clock_skew',
    'limiter_store_memory',
    'bus_deaf',
    'connections_short',
  ])
  for (const finding of ['settings_differ', 'versions_differ', 'clock_skew', 'bus_deaf'])
    expect(found.find((one) => one.finding === finding)?.what).toMatch(/^ghost \(a{16}\): /)
  expect(found[3]?.what).not.toContain(ghosts[0])
  const max = test.service.app.config.database_pool_max
  expect(found[5]?.what).toMatch(new RegExp(`the nodes may open ${100_000 + 2 * max + 3 * 4}\\.$`))
  await removeGhosts()
})
