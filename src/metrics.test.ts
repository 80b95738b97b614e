import * as api from '@opentelemetry/api'
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'
import { Registry } from 'prom-client'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { capturedLog } from '../test/helpers/captured-log.ts'
import { rival } from '../test/helpers/race.ts'
import { serviceForFile } from '../test/helpers/service.ts'
import { catalogue, type Metric } from './observe/catalogue.ts'
import { testService } from './testing/service.ts'

const exporter = new InMemorySpanExporter()
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register()
afterAll(() => {
  api.trace.disable()
  api.context.disable()
})
const registry = new Registry()
const { log, text, lines } = capturedLog()
const test = await serviceForFile({
  metrics: registry,
  traces: api,
  log,
  trusted_proxies: ['127.0.0.2'],
  limit_login_account: '3/900',
})
const ada = await test.account({ username: 'ada_of_metrics', email: 'ada@metrics.example', roles: ['admin'] })

const scrape = () => registry.metrics()
/** The value of a series; undefined if there is none. */
async function seriesOf(series: string): Promise<number | undefined> {
  const line = (await scrape()).split('\n').find((one) => one.startsWith(`cellkeep_${series} `))
  return line === undefined ? undefined : Number(line.split(' ').at(-1))
}
const rpc = (body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${test.url}/api/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', cookie: ada.cookie, ...headers },
    body: JSON.stringify(body),
  })
const call = (method: string, params: object = {}) => ({ jsonrpc: '2.0', id: 1, method, params })

/** The spans that end during this work; those of the bus come at times of their own. */
async function spansOf(work: () => Promise<unknown>) {
  exporter.reset()
  await work()
  return exporter.getFinishedSpans().filter(({ name }) => name !== 'bus')
}

describe('metrics', () => {
  it('tell how many partitions of the audit log are ready', async () => {
    await scrape()
    const ahead = () => seriesOf('audit_partitions_ahead')
    await expect.poll(ahead).toBe(0)
    await test.service.operations.cleanUp()
    await expect.poll(ahead).toBe(2)
  })

  it('count each call once, by method, reason and surface', async () => {
    const calls = 'rpc_requests_total{method="cell_get",reason="cell_not_found",surface='
    await rpc(call('cell_get', { path: '/none' }))
    await rpc([call('cell_get', { path: '/none' }), call('cell_get', { path: '/none' })])
    await expect(test.service.call('cell_get', { path: '/none' })).rejects.toThrow()
    expect(await seriesOf(`${calls}"http"}`)).toBe(1)
    expect(await seriesOf(`${calls}"batch"}`)).toBe(2)
    expect(await seriesOf(`${calls}"call"}`)).toBe(1)
    expect(await seriesOf('rpc_duration_seconds_count{method="cell_get"}')).toBe(4)
    expect(
      await seriesOf('http_requests_total{route="/api/rpc",method="POST",outcome="4xx"}'),
    ).toBeGreaterThanOrEqual(1)
  })

  it('name statements by the method that sends them, and those that requests share by what they read', async () => {
    await rpc(call('cell_list'))
    expect(
      await seriesOf('db_statement_seconds_count{statement="cell_list",target="primary"}'),
    ).toBeGreaterThanOrEqual(1)
    expect(
      await seriesOf('db_statement_seconds_count{statement="caller",target="primary"}'),
    ).toBeGreaterThanOrEqual(1)
    expect(await seriesOf('batch_size_count{batch="caller"}')).toBeGreaterThanOrEqual(1)
    // In one scrape, because each one makes the service read the database again.
    const counts = (await scrape()).matchAll(/db_(query|statement)_seconds_count.* (\d+)$/gm)
    const [all, ...named] = [...counts].map(([, , count]) => Number(count))
    expect(all).toBe(named.reduce((sum, count) => sum + count))
  })

  it('let unknown names share a value', async () => {
    for (const name of ['no_such_method', 'nor_this_one']) await rpc(call(name))
    for (const path of ['/none', '/api/rpc/', '/API/RPC', '/api/account/logins'])
      await fetch(test.url + path, { method: 'PROPFIND' })
    const unknown = 'method="unknown",reason="method_not_found",surface="http"'
    expect(await seriesOf(`rpc_requests_total{${unknown}}`)).toBe(2)
    expect(await seriesOf('http_requests_total{route="unknown",method="other",outcome="4xx"}')).toBe(4)
  })

  it('see sign-ins, hashes and limiters', async () => {
    const hashed = (await seriesOf('hash_wait_seconds_count')) ?? 0
    const { client } = test
    for (let attempt = 0; attempt < 4; attempt++)
      await client()
        .account.login({ username: ada.username, password: 'a wrong password' })
        .catch(() => {})
    expect(await seriesOf('login_attempts_total{outcome="invalid_credentials"}')).toBe(3)
    expect(await seriesOf('login_attempts_total{outcome="rate_limited"}')).toBe(1)
    expect(await seriesOf('rate_limited_total{limiter="login_account"}')).toBe(1)
    expect(await seriesOf('limiter_seconds_count{store="memory"}')).toBeGreaterThan(3)
    expect(await seriesOf('hash_wait_seconds_count')).toBe(hashed + 3)
  })

  it('see live connections, and why they end', async () => {
    const bob = await test.account()
    const socket = new WebSocket(`${test.url.replace('http', 'ws')}/api/ws`, {
      headers: { cookie: bob.cookie },
    } as never)
    await new Promise((resolve) => socket.addEventListener('open', resolve))
    expect(await seriesOf('live_connections{kind="socket"}')).toBe(1)
    const closed = new Promise((resolve) => socket.addEventListener('close', resolve))
    await bob.client.account.logout()
    await closed
    expect(await seriesOf('live_connections{kind="socket"}')).toBe(0)
    expect(await seriesOf('live_closed_total{kind="socket",reason="revoked"}')).toBe(1)
  })

  it('see periodic work and the state of the service', async () => {
    expect(await seriesOf('readiness{reason="ok"}')).toBe(1)
    expect(await seriesOf('db_pool{state="waiting",target="primary"}')).toBe(0)
    expect(await scrape()).toMatch(/cellkeep_build_info\{version="[\d.]+",node_version="v\d+.*",schema="\d+_/)
    expect(await scrape()).toContain('# TYPE cellkeep_event_loop_delay_seconds summary\n')
  })

  it('tell at the first scrape what readiness has answered', async () => {
    const metrics = new Registry()
    await using fresh = await testService({ metrics })
    await fetch(`${fresh.url}/ready`)
    expect(await metrics.metrics()).toContain('cellkeep_readiness{reason="ok"} 1')
  })

  it('have 3000 series at most, whatever is called', () => {
    // The series of prom-client itself.
    const ofProcess = 150
    const most = Object.values<Metric>(catalogue).map(({ type, max = 5, buckets = [] }) =>
      type === 'histogram' ? max * (buckets.length + 3) : max,
    )
    expect(most.reduce((all, one) => all + one)).toBeLessThanOrEqual(3000 - ofProcess)
  })

  it('of a method that finds no room are counted as other', async () => {
    const own = new Registry()
    await using many = await testService({ metrics: own })
    const { observer } = many.service.app
    for (let number = 0; number < 500; number++) observer.count('rate_limited_total', `limiter_${number}`)
    const series = (await own.metrics()).match(/^cellkeep_rate_limited_total\{.*$/gm) ?? []
    expect(series).toHaveLength(catalogue.rate_limited_total.max)
    expect(series.at(-1)).toBe(
      `cellkeep_rate_limited_total{limiter="other"} ${501 - catalogue.rate_limited_total.max}`,
    )
    await many.close()
    expect(await own.metrics()).not.toContain('cellkeep_')
  })
})

describe('traces', () => {
  it('of a mutation are one tree: request, call, statements', async () => {
    const { cell } = await ada.client.cell_create({ acting: ada.actor_id, data: {} })
    const spans = await spansOf(() =>
      rpc(
        call('cell_update', {
          acting: ada.actor_id,
          cell_id: cell.id,
          expected_version: 1,
          data: { a: 'x' },
        }),
      ),
    )
    const byName = new Map(spans.map((span) => [span.name, span]))
    const [server, rpcSpan] = [byName.get('POST /api/rpc'), byName.get('rpc cell_update')]
    expect(rpcSpan?.parentSpanContext?.spanId).toBe(server?.spanContext().spanId)
    const statements = spans.filter(({ name }) => name.startsWith('db '))
    expect(new Set(statements.map(({ name }) => name))).toEqual(new Set(['db caller', 'db cell_update']))
    expect(new Set(spans.map((span) => span.spanContext().traceId)).size).toBe(1)
    expect(server?.attributes).toMatchObject({ 'http.route': '/api/rpc', 'http.response.status_code': 200 })
  })

  it('of a call whose connection was lost are one tree too, with the number of each attempt and no value', async () => {
    const { cell } = await ada.client.cell_create({ acting: ada.actor_id, data: {} })
    const other = await rival(test.databaseUrl)
    onTestFinished(other.close)
    const spans = await spansOf(async () => {
      await other.begin('select from cell where id = $1 for update', [cell.id])
      const sent = rpc(
        call('cell_update', { acting: ada.actor_id, cell_id: cell.id, data: { a: 'unheard' } }),
      )
      await other.blocks(1)
      await other.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'`,
      )
      await other.commit()
      expect((await sent).status).toBe(200)
    })
    expect(new Set(spans.map((span) => span.spanContext().traceId)).size).toBe(1)
    const updates = spans.filter(({ name }) => name === 'db cell_update')
    const attempts = updates.map(({ attributes }) => attributes['cellkeep.attempt'])
    expect([...new Set(attempts)].sort()).toEqual([1, 2])
    expect(
      JSON.stringify(spans.map(({ attributes, events, status }) => [attributes, events, status])),
    ).not.toMatch(`unheard|${cell.id}`)
    expect(lines()).toContainEqual(expect.objectContaining({ rpc_method: 'cell_update', attempts: 2 }))
  })

  it('go on from a trusted proxy only; a stranger’s is a link', async () => {
    const [traceId, spanId] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331']
    const traceparent = `00-${traceId}-${spanId}-01`
    const ask = (address: string) =>
      spansOf(() =>
        test.service.fetch(new Request('http://x/health', { headers: { traceparent } }), { address }),
      )
    const [trusted] = await ask('127.0.0.2')
    expect(trusted?.spanContext().traceId).toBe(traceId)
    expect(trusted?.parentSpanContext?.spanId).toBe(spanId)
    const [strange] = await ask('203.0.113.9')
    expect(strange?.spanContext().traceId).not.toBe(traceId)
    expect(strange?.parentSpanContext).toBeUndefined()
    expect(strange?.links[0]?.context.traceId).toBe(traceId)
  })

  it('of the bus are by themselves, as many requests share what it sends', async () => {
    exporter.reset()
    await ada.client.cell_create({ acting: ada.actor_id, data: {} })
    const sent = () => exporter.getFinishedSpans().find(({ name }) => name === 'bus')
    await expect.poll(sent).toMatchObject({ attributes: { 'cellkeep.payloads': 1 } })
    expect(sent()?.parentSpanContext).toBeUndefined()
  })

  it('mark what failed unexpectedly, not what was refused', async () => {
    const [refused] = (await spansOf(() => rpc(call('cell_get', { path: '/none' })))).filter(({ name }) =>
      name.startsWith('rpc'),
    )
    expect(refused?.status.code).toBe(api.SpanStatusCode.UNSET)
    expect(refused?.attributes['cellkeep.reason']).toBe('cell_not_found')
  })
})

it('the line of a request says how long its statements took', async () => {
  await rpc(call('cell_list'))
  const line = lines().findLast(({ rpc_method }) => rpc_method === 'cell_list')
  expect(line?.db_ms).toBeGreaterThan(0)
})

it('the line of a request counts the time of statements that are sent together once', async () => {
  const eve = await test.account()
  const other = await rival(test.databaseUrl)
  onTestFinished(other.close)
  await other.begin('select from account where id = $1 for update', [eve.id])
  const offered = rpc(call('role_grant_offer_create', { to_account_id: eve.id, role: 'admin' }))
  await other.blocks(1)
  await other.query('select pg_sleep(0.2)')
  await other.commit()
  expect((await offered).status).toBe(200)
  const line = lines().findLast(({ rpc_method }) => rpc_method === 'role_grant_offer_create')
  expect(line?.db_ms).toBeGreaterThan(200)
  expect(line?.db_ms).toBeLessThanOrEqual(line?.duration_ms as number)
})

it('no metric, span or log line holds a name, id, address, token, path or password', async () => {
  exporter.reset()
  const secret = 'a very secret password'
  const made = await test.account({
    username: 'grace_in_labels',
    password: secret,
    email: 'grace@labels.example',
  })
  const { cell } = await made.client.cell_create({
    acting: made.actor_id,
    data: { note: 'words-of-a-cell' },
  })
  const { token } = await made.client.account_token_create({
    name: 'token-in-labels',
    scope: { kind: 'full' },
    lifetime: { kind: 'eternal' },
  })
  await fetch(`${test.url}/verify/${made.id}?token=${token}`, {
    headers: { authorization: `Bearer ${token}` },
  })
  await ada.client.cell_create({ acting: ada.actor_id, path: '/hidden-in-labels', data: {} })
  await rpc(call(`method_${made.username}`, { path: '/hidden-in-labels' }))
  await rpc(call('cell_get', { path: '/hidden-in-labels' }), { authorization: `Bearer ${token}` })
  await made.client.account.login({ username: made.username, password: secret })
  await made.client.account.login({ username: made.username, password: 'not the secret' }).catch(() => {})
  const spans = JSON.stringify(
    exporter
      .getFinishedSpans()
      .map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
  )
  expect(spans.length).toBeGreaterThan(1000)
  const watched = (await scrape()) + spans
  const never = [
    made.username,
    'grace@labels',
    secret,
    'not the secret',
    token,
    'hidden-in-labels',
    'words-of-a-cell',
    'token-in-labels',
    made.cookie.split('=')[1] as string,
  ]
  for (const word of never) expect(`${watched}${text()}`.includes(word), word).toBe(false)
  for (const id of [made.id, made.actor_id, cell.id, '127.0.0.1'])
    expect(watched.includes(id), id).toBe(false)
})
