import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir } from 'node:fs/promises'
import { createServer } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import WebSocket from 'ws'
import { freePort } from '../../test/helpers/free-port.ts'
import { type Check, need, run, until } from './check.ts'
import { keeper, type Nodes, withNodes } from './nodes.ts'
import { caddy, haproxy, nginx, type ProxyProgram } from './proxy-programs.ts'

/** Longer than what proxies allow a silent connection by default. */
const idleMs = 70_000

/** The application behind a proxy: the headers that reached it. */
type App = { port: number; seen: Record<string, unknown>[] }
/** Two nodes behind each proxy, with the files unchanged except addresses and certificates. */
export const proxies: Check = async function* () {
  need('nginx')
  need('caddy')
  need('haproxy')
  need('openssl')
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  const said: string[] = []
  const settings = {
    CELLKEEP_TRUSTED_PROXIES: '127.0.0.1',
    CELLKEEP_SHUTDOWN_DELAY_MS: '3000',
    CELLKEEP_ALLOWED_ORIGINS: 'https://localhost:*',
    // A fast machine creates more cells during the restarts than the limiter admits.
    CELLKEEP_LIMIT_CELL_CREATE: 'off',
  }
  await withNodes(2, settings, async (nodes) => {
    const app = await startApp()
    const begun: Begun[] = []
    try {
      for (const proxy of [nginx, caddy, haproxy]) begun.push(await begin(proxy, nodes, app))
      for (const one of begun) {
        const passed = (what: string): void => void said.push(`${one.proxy.name}: ${what}`)
        await keepsHealthInside(one.url)
        passed('/health and /ready are not passed on')
        if (one.proxy.asksWhoCalls) {
          await tellsWhoCalls(one, app)
          passed('the application hears who calls, never what a client claims, and its own idempotency keys')
        }
        await tellsAddress(one)
        passed('X-Forwarded-For of a client does not count')
      }
      await Promise.all([...begun.map(staysOpen), outlivesSilence(begun, nodes)])
      said.push(`socket and stream live after ${idleMs / 1000} s of silence behind each`)
      said.push('calls in the moment in which nodes end silent connections reach them')
      await Promise.all(begun.map((one) => restartsUnseen(one, nodes)))
      said.push('both nodes restarted under load: no call failed, every socket was told 1001')
    } finally {
      for (const { child } of begun) {
        const ended = once(child, 'exit')
        child.kill()
        // Caddy would wait for open connections.
        const kill = setTimeout(() => child.kill('SIGKILL'), 3000)
        await ended
        clearTimeout(kill)
      }
      app.close()
    }
  })
  yield* said
}

type Begun = { proxy: ProxyProgram; child: ChildProcess; url: string; cookie: string; account_id: string }

async function begin(proxy: ProxyProgram, { dir, ports }: Nodes, app: App): Promise<Begun> {
  const own = join(dir, proxy.name)
  await mkdir(own)
  await chmod(own, 0o755)
  const [certificate, key] = [join(own, 'certificate.pem'), join(own, 'key.pem')]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', ...subject]
  await run('openssl', [...request, '-keyout', key, '-out', certificate])
  const port = await freePort()
  const child = await proxy.start({ dir: own, ports, app: app.port, port, certificate, key })
  const url = `https://localhost:${port}`
  await until(`${proxy.name} answers`, async () => (await fetch(`${url}/api/account/status`)).status < 500)
  return { proxy, child, url, ...(await signIn(url)) }
}

async function startApp(): Promise<App & { close(): void }> {
  const seen: App['seen'] = []
  const server = createServer((request, response) => {
    seen.push(request.headers)
    response.end('the application')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as { port: number }).port, seen, close: () => void server.close() }
}

async function keepsHealthInside(url: string): Promise<void> {
  for (const path of ['/health', '/health/live', '/health/serving', '/health/ready', '/ready'])
    assert.equal((await fetch(url + path)).status, 404, path)
}

/** Signs in as a client that claims to be elsewhere. */
async function signIn(url: string): Promise<{ cookie: string; account_id: string }> {
  const answer = await fetch(`${url}/api/account/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.9' },
    body: JSON.stringify(keeper),
  })
  assert.equal(answer.status, 200, await answer.clone().text())
  const cookie = answer.headers.getSetCookie()[0]?.split(';')[0] as string
  const { id: account_id } = (await call(url, cookie, 'account_verify')) as { id: string }
  return { cookie, account_id }
}

async function call(url: string, cookie: string, method: string, params: object = {}): Promise<unknown> {
  const answer = await fetch(`${url}/api/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', cookie },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const text = await answer.text()
  assert.equal(answer.status, 200, `${method}: ${answer.status} ${text}`)
  return JSON.parse(text).result
}

const claimed = { 'x-svc-account-id': 'somebody-else', 'X-Svc-Username': 'root' }
/** CGI, WSGI, PHP and others read these as the same headers. */
const alike = { x_svc_account_id: 'somebody-else', 'X-Svc_Username': 'root' }

async function tellsWhoCalls({ url, cookie, account_id }: Begun, { seen }: App): Promise<void> {
  seen.length = 0
  assert.equal((await fetch(`${url}/app/`)).status, 401)
  assert.equal((await fetch(`${url}/app/`, { headers: claimed })).status, 401)
  assert.equal(seen.length, 0, 'nobody unknown reached the application')
  const keyed = { 'idempotency-key': 'one-of-the-application' }
  for (const headers of [{}, claimed, alike, keyed])
    assert.equal((await fetch(`${url}/app/x`, { headers: { ...headers, cookie } })).status, 200)
  // Headers named in `Connection` belong to this connection alone, and fetch would not send them.
  const hiding = { connection: 'close, X-Svc-Account-Id, X-Svc-Username', cookie }
  const hidden = request(`${url}/app/x`, { headers: hiding })
  hidden.end()
  const [{ statusCode }] = await once(hidden, 'response')
  assert.equal(statusCode, 200)
  const told = seen.map((one) => Object.entries(one).filter(([name]) => /^x[-_]svc/.test(name)))
  const right = { 'x-svc-account-id': account_id, 'x-svc-username': keeper.username }
  for (const one of told) assert.deepEqual(Object.fromEntries(one), right)
  assert.equal(told.length, 5)
  assert.equal(seen.at(3)?.['idempotency-key'], keyed['idempotency-key'])
}

async function tellsAddress({ url, cookie }: Begun): Promise<void> {
  const { events } = (await call(url, cookie, 'audit_log_list', { event_type: 'login', limit: 1 })) as {
    events: { ip: string }[]
  }
  assert.match(events[0]?.ip as string, /^(::ffff:)?127\.0\.0\.1$|^::1$/)
}

/** A socket and an audit stream that are silent for a while, and then answer. */
async function staysOpen({ url, cookie, proxy: { name } }: Begun): Promise<void> {
  const socket = await openSocket(url, cookie)
  const stream = await fetch(`${url}/api/account/audit/stream`, { headers: { cookie } })
  assert.equal(stream.status, 200)
  const events = eventsOf(stream)
  await delay(idleMs)
  assert.equal(socket.readyState, WebSocket.OPEN, `${name}: the socket is open`)
  const answered = once(socket, 'message')
  socket.send(JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'heartbeat' }))
  const late = delay(10_000).then(() => assert.fail(`${name}: too late`))
  const [data] = await Promise.race([answered, late])
  assert.deepEqual(JSON.parse(String(data)), { jsonrpc: '2.0', id: 7, result: {} })
  const created = call(url, cookie, 'cell_create', { data: {} })
  await Promise.race([events('cell_create'), late])
  await created
  socket.terminate()
  await stream.body?.cancel().catch(() => undefined)
}

/**
 * Nodes end connections after 65 s of silence. Here they are late: they are halted over that moment, as if they were
 * computing.
 */
async function outlivesSilence(begun: Begun[], { running }: Nodes): Promise<void> {
  // Each on its own connection to the proxy, which also ends silent ones.
  const create = async ({ url, cookie, proxy }: Begun): Promise<void> => {
    const headers = { 'content-type': 'application/json', cookie }
    const sent = request(`${url}/api/rpc`, { method: 'POST', agent: false, headers })
    sent.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'cell_create', params: { data: {} } }))
    const [answer] = await once(sent, 'response')
    answer.resume()
    assert.equal(answer.statusCode, 200, `${proxy.name}: cell_create after a silence`)
  }
  const burst = () => Promise.all(begun.flatMap((one) => Array.from({ length: 20 }, () => create(one))))
  await burst()
  await delay(65_300)
  for (const node of running) node.signal('SIGSTOP')
  await delay(300)
  const last = burst()
  await delay(700)
  for (const node of running) node.signal('SIGCONT')
  await last
}

function eventsOf(stream: Response): (text: string) => Promise<void> {
  const reader = stream.body?.getReader()
  let all = ''
  return async (text) => {
    while (!all.includes(text)) {
      const { value, done } = (await reader?.read()) ?? { done: true, value: undefined }
      if (done) throw new Error('the stream ended')
      all += Buffer.from(value as Uint8Array).toString()
    }
    reader?.releaseLock()
  }
}

async function openSocket(url: string, cookie: string): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace('https', 'wss')}/api/ws`, { headers: { cookie, origin: url } })
  await once(socket, 'open')
  return socket
}

let restarted: Promise<void> | undefined

/** Calls one after the other, while both nodes are restarted. */
async function restartsUnseen({ url, cookie, proxy }: Begun, nodes: Nodes): Promise<void> {
  const sockets = await Promise.all(Array.from({ length: 4 }, () => openSocket(url, cookie)))
  const codes = sockets.map((socket) => once(socket, 'close').then(([code]) => code))
  restarted ??= (async () => {
    for (const index of nodes.ports.keys()) assert.equal(await nodes.restart(index), 0)
  })()
  let isOver = false
  void restarted.finally(() => {
    isOver = true
  })
  let calls = 0
  const failed: unknown[] = []
  while (!isOver)
    for (const [method, params] of [
      ['cell_create', { data: {} }],
      ['account_verify', {}],
    ] as const) {
      calls += 1
      await call(url, cookie, method, params).catch((error) => failed.push(error))
      if (proxy.asksWhoCalls)
        await fetch(`${url}/app/x`, { headers: { cookie } })
          .then(({ status }) => assert.equal(status, 200, `/app/x: ${status}`))
          .catch((error) => failed.push(error))
    }
  await restarted
  assert.ok(calls > 20, `${calls} calls`)
  assert.equal(failed.length, 0, `${proxy.name}: ${failed.length} of ${calls} failed: ${failed[0]}`)
  assert.deepEqual(await Promise.all(codes), Array(4).fill(1001))
}
