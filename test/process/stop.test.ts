import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { Agent, get } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { emptyDatabase } from '../fresh-database.ts'
import { gatedConfig } from '../helpers/gate.ts'
import { ownPostgres } from '../helpers/own-postgres.ts'
import {
  bootstrap,
  databaseOf,
  type Environment,
  entry,
  startServer,
  workspace,
} from '../helpers/server-process.ts'

const space = await workspace()
afterAll(() => space.remove())
let count = 0

/** A server with a signed-in client and a mutation that waits inside its transaction. */
async function serverWithRunningMutation(env: Environment, extra?: string) {
  const cwd = await space.make(`stop-${++count}`)
  const gate = await gatedConfig(cwd, extra)
  const server = await startServer(cwd, env)
  onTestFinished(async () => {
    gate.close()
    await server.end('SIGKILL')
  })
  await bootstrap(server)
  const answer = server.client.cell_create({ data: { gate: true } }).catch((error: Error) => error)
  await gate.entered
  return { cwd, gate, server, answer }
}

test('at SIGTERM a running mutation is answered and kept with its audit row; later requests are refused', async () => {
  const own = await ownPostgres()
  const { gate, server, answer } = await serverWithRunningMutation(own.env)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  expect(await ask(`${server.url}/ready`, agent)).toMatchObject({ status: 200 })

  server.signal('SIGTERM')
  await server.logged('stopping')
  // On a connection that is already open, as no new ones are accepted.
  const refused = await ask(`${server.url}/api/account/status`, agent)
  expect(refused).toEqual({ status: 503, connection: 'close', body: '{"error":"shutting_down"}' })
  await expect(openSocket(server.url)).rejects.toMatchObject({ code: 'ECONNREFUSED' })

  gate.open()
  const created = await answer
  expect(created).toMatchObject({ cell: { version: 1 } })
  expect((await server.ended).code).toBe(0)
  const client = await own.open()
  const { rows } = await client.query(`
    select c.id from cell c join audit_entries() a on a.metadata->>'cell_id' = c.id::text and a.outcome = 'success'`)
  expect(rows).toEqual([{ id: (created as { cell: { id: string } }).cell.id }])
})

test('a start that waits for the migration of another process heeds SIGTERM', async () => {
  const own = await ownPostgres(emptyDatabase)
  const holder = await own.open()
  await holder.query(`select pg_advisory_lock(hashtextextended('cellkeep migrate', 0))`)
  const cwd = await space.make('waits')
  const waiting = spawn(process.execPath, [entry, 'start'], {
    cwd,
    env: { ...process.env, ...own.env, CELLKEEP_PORT: '0', CELLKEEP_LOG_FORMAT: 'json' },
  })
  onTestFinished(() => void waiting.kill('SIGKILL'))
  const ended = once(waiting, 'exit')
  let said = ''
  waiting.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  await expect.poll(() => said, { timeout: 60_000 }).toContain('migration_waits')
  waiting.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
  expect((await holder.query(`select to_regclass('cellkeep.account') as made`)).rows).toEqual([
    { made: null },
  ])
})

const namespace = ['--user', '--map-root-user', '--pid', '--fork', '--kill-child']
const isFirstPossible = spawnSync('unshare', [...namespace, 'true']).status === 0

test.runIf(isFirstPossible)(
  'the first process of a container heeds SIGTERM while it still loads',
  async () => {
    const cwd = await space.make('first')
    await writeFile(
      join(cwd, 'cellkeep.config.mjs'),
      `console.log('loading')\nawait new Promise((resolve) => setTimeout(resolve, 1e6))`,
    )
    const program = fileURLToPath(new URL('../../bin/cellkeep.js', import.meta.url))
    const container = spawn('unshare', [...namespace, process.execPath, program, 'start'], { cwd })
    onTestFinished(() => void container.kill('SIGKILL'))
    await once(container.stdout, 'data')
    const [first] = (await readFile(`/proc/${container.pid}/task/${container.pid}/children`, 'utf8')).split(
      ' ',
    )
    process.kill(Number(first), 'SIGTERM')
    expect(await once(container, 'exit')).toEqual([143, null])
  },
)

test('connections on which no request runs do not hold up a stop', async () => {
  const { env } = await ownPostgres()
  const cwd = await space.make('idle')
  const server = await startServer(cwd, { ...env, CELLKEEP_SHUTDOWN_TIMEOUT_MS: '300000' })
  const agent = new Agent({ keepAlive: true })
  await ask(`${server.url}/health`, agent)
  await openSocket(server.url)
  await openSocket(server.url, 'GET /health HTTP/1.1\r\nHost: ')
  expect((await server.end('SIGTERM')).code).toBe(0)
})

test('what runs longer than the limit is cut: exit code 1, nothing of it is kept, no database is left', async () => {
  const { cwd, server, answer } = await serverWithRunningMutation({ CELLKEEP_SHUTDOWN_TIMEOUT_MS: '1000' })
  expect(await databaseOf(cwd)).toBeGreaterThan(0)
  expect((await server.end('SIGTERM')).code).toBe(1)
  expect(await answer).toBeInstanceOf(Error)
  expect(await databaseOf(cwd)).toBeUndefined()
  const next = await startServer(cwd)
  expect(await next.client.cell_list()).toMatchObject({ cells: [] })
  await next.end('SIGTERM')
})

test('clients that never send the rest of a body, or read no answer, do not hold up a stop', async () => {
  const { env } = await ownPostgres()
  const cwd = await space.make('never')
  const server = await startServer(cwd, { ...env, CELLKEEP_SHUTDOWN_TIMEOUT_MS: '300000' })
  await bootstrap(server)
  for (let index = 0; index < 45; index++)
    await server.client.cell_create({ visibility: 'public', data: { text: 'x'.repeat(200_000) } })
  const unread = await openSocket(
    server.url,
    'GET /api/rpc?method=cell_list&id=1&params={"limit":200} HTTP/1.1\r\nHost: x\r\n\r\n',
  )
  await once(unread, 'readable')
  const head = 'POST /api/rpc HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n'
  // The response 100 shows that the request has begun.
  const socket = await openSocket(server.url, `${head}Expect: 100-continue\r\n\r\n{`)
  await once(socket, 'data')
  const answer = once(socket, 'data')
  const stopped = server.end('SIGTERM')
  expect(String(await answer)).toMatch(/^HTTP\/1\.1 503 .*\{"error":"shutting_down"\}$/s)
  expect((await stopped).code).toBe(0)
})

test('a second signal ends at once', async () => {
  const { server } = await serverWithRunningMutation((await ownPostgres()).env)
  server.signal('SIGTERM')
  await server.logged('stopping')
  expect((await server.end('SIGTERM')).code).toBe(1)
})

test('in an npm script, which forwards a signal that all processes already got, it ends properly', async () => {
  const { env } = await ownPostgres()
  const cwd = await space.make('npm')
  const server = await startServer(cwd, { ...env, npm_lifecycle_script: 'cellkeep start' })
  server.signal('SIGINT')
  expect((await server.end('SIGTERM')).code).toBe(0)
})

test('during the shutdown delay readiness says no and everything else is served', async () => {
  const { env } = await ownPostgres()
  const cwd = await space.make('delay')
  const server = await startServer(cwd, { ...env, CELLKEEP_SHUTDOWN_DELAY_MS: '60000' })
  server.signal('SIGINT')
  await server.logged('stopping')
  const ready = await fetch(`${server.url}/ready`)
  expect([ready.status, await ready.json()]).toEqual([503, { error: 'shutting_down' }])
  const agent = new Agent({ keepAlive: true })
  expect(await ask(`${server.url}/health`, agent)).toMatchObject({ status: 200, connection: 'close' })
  await bootstrap(server)
  expect((await server.end('SIGINT')).code).toBe(1)
})

test('what a config file leaves running does not keep the process alive', async () => {
  const { gate, server, answer } = await serverWithRunningMutation(
    (await ownPostgres()).env,
    'setInterval(() => {}, 1000)',
  )
  gate.open()
  await answer
  expect((await server.end('SIGTERM')).code).toBe(0)
})

async function ask(url: string, agent: Agent) {
  const [response] = await once(get(url, { agent }), 'response')
  let body = ''
  for await (const chunk of response) body += chunk
  return { status: response.statusCode, connection: response.headers.connection, body }
}

async function openSocket(url: string, text = ''): Promise<Socket> {
  const { port, hostname } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  socket.on('error', () => {})
  if (text) await new Promise((resolve) => socket.write(text, resolve))
  return socket
}
