import { createServer } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { runCellkeep, startServer, workspace } from '../helpers/server-process.ts'
import { stoppableCluster } from '../helpers/stoppable-cluster.ts'

const space = await workspace()
const cluster = await stoppableCluster()
const port = await freePort()
const server = await startServer(await space.make('metrics'), {
  CELLKEEP_DATABASE_URL: cluster.url,
  CELLKEEP_COOKIE_KEYS: 'k'.repeat(43),
  CELLKEEP_METRICS_PORT: String(port),
  CELLKEEP_NODE_NAME: 'web-1',
  CELLKEEP_SHUTDOWN_DELAY_MS: '1000',
})
afterAll(async () => {
  await space.remove()
  await cluster.remove()
})

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => probe.once('listening', resolve))
  const { port } = probe.address() as { port: number }
  await new Promise((resolve) => probe.close(resolve))
  return port
}

const ask = (path: string, method = 'GET') => fetch(`http://127.0.0.1:${port}${path}`, { method })
/** The time of the quickest of three scrapes, as the machine may be busy with other tests. */
async function quickestMs(): Promise<number> {
  const scrapes: number[] = []
  for (let number = 0; number < 3; number++) {
    const began = performance.now()
    await (await ask('/metrics')).text()
    scrapes.push(performance.now() - began)
  }
  return Math.min(...scrapes)
}
const ready = (reason: string) =>
  expect
    .poll(async () => (await ask('/metrics')).text())
    .toContain(`cellkeep_readiness{reason="${reason}"} 1`)

describe('metrics of a process', () => {
  test('are on their own port only, and nothing else is there', async () => {
    const answer = await ask('/metrics')
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
    const text = await answer.text()
    for (const name of ['cellkeep_build_info', 'process_cpu_seconds_total', 'cellkeep_readiness'])
      expect(text).toContain(`# HELP ${name}`)
    expect((await ask('/')).status).toBe(404)
    expect((await ask('/health')).status).toBe(404)
    expect((await ask('/metrics', 'POST')).status).toBe(405)
    expect((await fetch(`${server.url}/metrics`)).status).toBe(404)
  })

  test('every line of the log names the node', async () => {
    await server.logged('started')
    expect(new Set(server.log().map(({ node }) => node))).toEqual(new Set(['web-1']))
  })

  test('answer at once while the database is away, which is only a few lines in the log', async () => {
    await ready('ok')
    await cluster.stop()
    const before = server.log().length
    const call = { jsonrpc: '2.0', id: 1, method: 'app_settings_get' }
    const headers = { 'content-type': 'application/json', 'x-daemon-token': 'x'.repeat(43) }
    const login = { username: 'ada', password: 'a long password' }
    const send = (path: string, body: object) =>
      fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    const answers = await Promise.all([
      ...Array.from({ length: 300 }, () => send('/api/rpc', { ...call, method: 'cell_list', params: {} })),
      send('/api/account/login', login),
    ])
    const failed = answers.filter(({ status }) => status === 503)
    expect(failed.length).toBeGreaterThan(250)
    await ready('db_unreachable')
    // A scrape that waited for the database would take five seconds.
    expect(await quickestMs()).toBeLessThan(1_000)
    const lines = server.log().slice(before)
    const alerts = lines.filter(({ level }) => level !== 'info')
    expect(alerts.length).toBeLessThan(30)
    for (const { event } of alerts) expect(event).toEqual(expect.stringMatching(/^[a-z_]+$/))
    await cluster.start()
    await ready('ok')
  })

  test('answer until the end of a stop', async () => {
    const ended = server.end('SIGTERM')
    await ready('shutting_down')
    expect((await ended).code).toBe(0)
  })
})

test('a port that is the server’s own is refused, as are traces without their package', async () => {
  const cwd = await space.make('refused')
  const same = await runCellkeep(cwd, ['start'], { CELLKEEP_PORT: '4040', CELLKEEP_METRICS_PORT: '4040' })
  expect(same.code).toBe(78)
  expect(same.stderr).toContain('CELLKEEP_METRICS_PORT must not be CELLKEEP_PORT')
  const traces = await runCellkeep(cwd, ['start'], { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' })
  expect(traces.code).toBe(78)
  expect(traces.stderr).toContain('npm install @opentelemetry/sdk-node')
})
