import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { gatedConfig } from '../helpers/gate.ts'
import { ownPostgres } from '../helpers/own-postgres.ts'
import { type Environment, startServer, workspace } from '../helpers/server-process.ts'
import { openSocket, outcomeOf } from '../helpers/sockets.ts'

const space = await workspace()
afterAll(() => space.remove())
let count = 0

async function start(env: Environment) {
  const cwd = await space.make(`sockets-${++count}`)
  const gate = await gatedConfig(cwd)
  const server = await startServer(cwd, { ...env, CELLKEEP_COOKIE_SECURE: 'false' })
  onTestFinished(async () => {
    gate.close()
    await server.end('SIGKILL')
  })
  const token = (await readFile(`${cwd}/.cellkeep/bootstrap_token`, 'utf8')).trim()
  const made = await fetch(`${server.url}/api/account/bootstrap`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token, username: 'ada', password: 'correct horse battery' }),
  })
  const cookie = made.headers.getSetCookie()[0]?.split(';', 1)[0] as string
  return { server, gate, cookie }
}

test('at SIGTERM idle sockets close with 1001 at once, a busy one when its call is answered', async () => {
  const own = await ownPostgres()
  const { server, gate, cookie } = await start(own.env)
  const idle = await Promise.all(Array.from({ length: 20 }, () => openSocket(server.url, { cookie })))
  const busy = await openSocket(server.url, { cookie })
  const created = busy.call('cell_create', { data: { gate: true } })
  await gate.entered

  server.signal('SIGTERM')
  for (const socket of idle) expect(await socket.closed).toEqual({ code: 1001, reason: 'shutting down' })
  expect(outcomeOf(await busy.call('account_verify', {}, 'late'))).toBe('-32007 service_unavailable')
  gate.open()
  expect(outcomeOf(await created)).toBe('ok')
  expect(await busy.closed).toEqual({ code: 1001, reason: 'shutting down' })
  expect((await server.ended).code).toBe(0)
  const client = await own.open()
  const { rows } = await client.query(`select outcome from audit_entries() where event_type = 'cell_create'`)
  expect(rows).toEqual([{ outcome: 'success' }])
})

test('a client that never closes is cut, and does not hold up a stop beyond its limit', async () => {
  const { env } = await ownPostgres()
  const { server, cookie } = await start({ ...env, CELLKEEP_SHUTDOWN_TIMEOUT_MS: '1000' })
  const { hostname, port } = new URL(server.url)
  const deaf = connect(Number(port), hostname)
  const key = randomBytes(16).toString('base64')
  deaf.on('error', () => {})
  deaf.write(
    `GET /api/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nCookie: ${cookie}\r\n` +
      `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
  )
  await once(deaf, 'data')
  const cut = once(deaf.resume(), 'close')
  expect((await server.end('SIGTERM')).code).toBe(1)
  await cut
})
