import { webcrypto } from 'node:crypto'
import { getEventListeners } from 'node:events'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { page, type ReverseProxy, reverseProxy } from '../../test/helpers/reverse-proxy.ts'
import { actions } from '../actions.ts'
import { query } from '../core/declare.ts'
import { codeStatus } from '../error-codes.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'
import { batch } from './batch.ts'
import { type Client, createClient, type Layer } from './client.ts'
import { retry } from './retry.ts'

const large = query({
  doc: 'A text of this many MiB.',
  auth: { account: 'none', actor: 'none' },
  input: z.strictObject({ size: z.int() }),
  output: z.string(),
  handler: async ({ size }) => 'x'.repeat(size * 1_048_576),
})
type Own = typeof actions & { large: typeof large }

let test: TestService
let ada: TestAccount
beforeAll(async () => {
  test = await testService({ actions: { large } })
  ada = await test.account()
})
afterAll(() => test.close())
// A retry waits a random time; keep it short here.
afterEach(() => void vi.restoreAllMocks().unstubAllGlobals())

async function clientBehind(use: Layer[]): Promise<ReverseProxy & { client: Client<Own> }> {
  vi.spyOn(Math, 'random').mockReturnValue(0.01)
  const proxy = await reverseProxy(test.url)
  return { ...proxy, client: createClient<Own>({ url: proxy.url, use, headers: { cookie: ada.cookie } }) }
}
const lost = (response: { destroy(): void }): void => void response.destroy()
/** A layer, and the signals of the calls that passed it. */
function watched(): { watch: Layer; signals: AbortSignal[] } {
  const signals: AbortSignal[] = []
  const watch: Layer = (next) => (method, params, signal) => {
    if (signal) signals.push(signal)
    return next(method, params, signal)
  }
  return { watch, signals }
}
const listenersOn = (signals: readonly AbortSignal[]): number[] =>
  signals.map((signal) => getEventListeners(signal, 'abort').length)

const methods = ({ seen }: ReverseProxy): string[] => seen.map(({ method }) => method)

describe('retry', () => {
  it('takes exactly the built-in queries for reads', async () => {
    const all = Object.entries(actions)
    expect(all.length).toBeGreaterThan(40)
    const seen: string[] = []
    for (const [name] of all) {
      const failing = async () => ({ status: 0, text: '' })
      const asked: Layer = () => async () => ({ status: 0, text: '', retry_after: '0' })
      const client = createClient({
        url: 'http://127.0.0.1:1',
        use: [retry({ times: 1 }), asked],
        fetch: async () => {
          seen.push(name)
          throw await failing()
        },
      }) as unknown as Record<string, () => Promise<unknown>>
      vi.spyOn(Math, 'random').mockReturnValue(0)
      await client[name]?.().catch(() => {})
    }
    expect(seen).toEqual(all.flatMap(([name, { side_effects }]) => (side_effects ? [] : [name])))
  })

  it('repeats a read by GET until there is an answer', async () => {
    const { client, answer, ...proxy } = await clientBehind([retry({ times: 3 })])
    const unavailable = page(503, '{"error":{"code":-32007,"data":{"reason":"service_unavailable"}}}')
    answer(lost, page(502, '<html>'), unavailable)
    const { cell } = await ada.client.cell_create({ data: { label: 'ä & b' } })
    expect((await client.cell_get({ id: cell.id })).cell.data).toEqual({ label: 'ä & b' })
    expect(methods({ ...proxy, answer })).toEqual(['POST', 'GET', 'GET', 'GET'])
  })

  it('gives up after its times with the last failure, and repeats no refusal', async () => {
    const { client, answer, ...proxy } = await clientBehind([retry()])
    answer(page(502, '1'), page(503, '2'), page(504, '3'), page(502, 'later'))
    expect(await client.try.cell_list()).toMatchObject({ error: { status: 504, text: '3' } })
    expect(methods({ ...proxy, answer })).toHaveLength(3)
    answer()
    await client.try.cell_list()
    const before = proxy.seen.length
    expect(await client.try.cell_get({ id: ada.id })).toMatchObject({ error: { reason: 'cell_not_found' } })
    expect(proxy.seen.length).toBe(before + 1)
  })

  it('leaves nothing on a signal that outlives the call', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0)
    const { watch, signals } = watched()
    const fetch = async () => new Response('', { status: 502, headers: { 'retry-after': '0' } })
    const { signal } = new AbortController()
    const client = createClient({ url: test.url, use: [retry(), watch], signal, fetch })
    expect(await client.try.cell_list()).toMatchObject({ error: { status: 502 } })
    expect(listenersOn(signals)).toEqual([0])
  })

  it('never repeats a mutation', async () => {
    const { client, answer, ...proxy } = await clientBehind([retry()])
    answer(page(503, ''), lost)
    for (let round = 0; round < 2; round++)
      expect(await client.try.cell_create({ data: {} })).toMatchObject({
        error: { reason: 'transport_failed' },
      })
    expect(methods({ ...proxy, answer })).toEqual(['POST', 'POST'])
  })

  it('waits as long as it is asked to, or gives up at once if that is too long or it is aborted', async () => {
    const { client, answer, ...proxy } = await clientBehind([retry()])
    answer(page(503, 'busy', { 'retry-after': '1' }))
    const began = performance.now()
    await client.cell_list()
    expect(performance.now() - began).toBeGreaterThanOrEqual(990)
    answer(page(503, 'down', { 'retry-after': '3600' }))
    expect(await client.try.cell_list()).toMatchObject({ error: { status: 503 } })
    answer(page(503, 'down', { 'retry-after': new Date(Date.now() + 3_600_000).toUTCString() }))
    expect(await client.try.cell_list()).toMatchObject({ error: { status: 503 } })
    answer(page(503, 'busy', { 'retry-after': '20' }))
    const leaving = new AbortController()
    const left = createClient({
      url: proxy.url,
      use: [retry()],
      signal: leaving.signal,
      fetch: async (...call) => {
        const response = await fetch(...call)
        setTimeout(() => leaving.abort())
        return response
      },
    })
    expect(await left.try.cell_list()).toMatchObject({ error: { status: 503 } })
    expect(methods({ ...proxy, answer })).toEqual(['POST', 'GET', 'POST', 'POST', 'POST'])
  })
})

describe('retry with a deadline', () => {
  const key = ({ headers }: ReverseProxy['seen'][number]) => headers['idempotency-key']
  const withDeadline = (deadline_ms = 20_000) => clientBehind([retry({ deadline_ms })])

  it('repeats a mutation under one key until there is an answer, and it is carried out once', async () => {
    const { client, answer, seen } = await withDeadline()
    const refused = (status: number, reason: string) =>
      page(status, JSON.stringify({ error: { data: { reason, retry_after: 0 } } }))
    answer(lost, refused(503, 'service_unavailable'), refused(429, 'rate_limited'), page(502, '<html>'))
    await client.cell_create({ data: {} })
    expect(new Set(seen.map(key)).size).toBe(1)
    expect(seen.map(({ method }) => method)).toEqual(Array(5).fill('POST'))
    await client.cell_create({ data: {} })
    expect(key(seen[5] as (typeof seen)[0])).not.toBe(key(seen[0] as (typeof seen)[0]))
  })

  it.each([2 ** 31, Number.POSITIVE_INFINITY])('repeats a call for %s ms', async (deadline_ms) => {
    const { client, answer, seen } = await withDeadline(deadline_ms)
    answer(lost)
    await client.cell_create({ data: {} })
    expect(seen).toHaveLength(2)
  })

  it('has keys without crypto.randomUUID, which browsers have only over https', async () => {
    const { client, seen } = await withDeadline()
    const getRandomValues = (into: BigUint64Array<ArrayBuffer>) => webcrypto.getRandomValues(into)
    vi.stubGlobal('crypto', { getRandomValues })
    await client.cell_create({ data: {} })
    await client.cell_create({ data: {} })
    expect(new Set(seen.map(key)).size).toBe(2)
  })

  it('of a mutation whose answer was lost resolves to that answer', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.01)
    let losses = 3
    const answers: string[] = []
    const client = createClient({
      url: test.url,
      headers: { cookie: ada.cookie },
      use: [retry({ deadline_ms: 20_000 }), batch()],
      fetch: async (...call) => {
        const response = await fetch(...call)
        answers.push(await response.clone().text())
        if (losses-- > 0) throw new TypeError('cut')
        return response
      },
    })
    const before = await ada.client.cell_list({ limit: 200 })
    const { cell } = await client.cell_create({ data: { n: 1 } })
    expect(new Set(answers).size).toBe(1)
    expect(answers[0]).toContain(cell.id)
    const after = await ada.client.cell_list({ limit: 200 })
    expect(after.cells.length).toBe(before.cells.length + 1)
    losses = 1
    const made = client.try.account_token_create({ scope: { kind: 'full' }, lifetime: { kind: 'eternal' } })
    expect(await made).toMatchObject({ ok: false, error: { reason: 'idempotency_replayed', status: 409 } })
  })

  it('gives up at the deadline, also on a server that does not answer, and repeats no refusal', async () => {
    const { client, answer, seen } = await withDeadline(400)
    const down = () => page(503, 'down', { 'retry-after': '0' })
    answer(...Array.from({ length: 50 }, down))
    const given = await client.try.cell_create({ data: {} })
    // 0 if the deadline cut the last attempt short.
    expect([0, 503]).toContain(given.ok ? 200 : given.error.status)
    expect(seen.length).toBeGreaterThan(1)
    expect(seen.length).toBeLessThan(10)
    const other = await withDeadline(400)
    other.answer(() => {})
    expect(await other.client.try.cell_list()).toMatchObject({ error: { status: 0 } })
    const patient = await withDeadline(20_000)
    patient.answer(page(503, 'down', { 'retry-after': '25' }))
    expect(await patient.client.try.cell_list()).toMatchObject({ error: { status: 503 } })
    const refused = await patient.client.try.cell_update({ cell_id: ada.id, data: {} })
    expect(refused).toMatchObject({ error: { reason: 'cell_not_found' } })
    expect([other, patient].map(({ seen }) => seen.length)).toEqual([1, 2])
  })

  it('reads by GET without a key, and sends a method that takes no key once', async () => {
    const { client, answer, seen } = await withDeadline()
    answer(page(429, '{}', { 'retry-after': '0' }))
    await client.cell_list()
    expect(seen.map(({ method }) => method)).toEqual(['POST', 'GET'])
    expect(seen.map(key)).toEqual([undefined, undefined])
    for (let round = 0; round < 2; round++) expect(await client.large({ size: 0 })).toBe('')
    expect(seen.slice(2).map((one) => typeof key(one))).toEqual(['string', 'undefined', 'undefined'])
  })
})

describe('batch', () => {
  it('sends the calls of a turn as one request; each has its own result or error', async () => {
    const { client, seen } = await clientBehind([batch()])
    const { cell } = await ada.client.cell_create({ data: { label: 'one' } })
    const later = Promise.resolve().then(() => client.account_verify())
    const outcomes = await Promise.all([
      client.try.cell_get({ id: cell.id }),
      client.try.cell_get({ id: ada.id }),
      client.try.admin_account_list(),
      client.try.cell_get({ id: 1 as never }),
      later,
    ])
    expect(outcomes).toMatchObject([
      { ok: true, result: { cell: { id: cell.id } } },
      { ok: false, error: { reason: 'cell_not_found', status: 404 } },
      { ok: false, error: { reason: 'insufficient_permissions', status: 403 } },
      { ok: false, error: { reason: 'invalid_params', status: 400 } },
      { id: ada.id },
    ])
    expect(seen).toHaveLength(1)
    await client.account_verify()
    expect(JSON.parse(seen[1]?.body ?? '')).not.toBeInstanceOf(Array)
  })

  it('gives each refusal the status that its code has by itself', async () => {
    const { client, answer } = await clientBehind([batch()])
    const codes = [
      ...[-32700, -32600, -32601, -32602, -32603],
      ...Array.from({ length: 10 }, (_, at) => -32001 - at),
    ]
    const errors = codes.map((code, id) => ({ id, error: { code, data: { reason: 'refused' } } }))
    answer(page(200, JSON.stringify(errors)))
    const outcomes = await Promise.all(codes.map(() => client.try.cell_list()))
    expect(outcomes.map((outcome) => !outcome.ok && outcome.error.status)).toEqual(codes.map(codeStatus))
  })

  it('splits what is more than 50 calls, or too large together', async () => {
    const { client, seen } = await clientBehind([batch()])
    const many = await Promise.all(Array.from({ length: 120 }, () => client.account_verify()))
    expect(many.map(({ id }) => id)).toEqual(Array(120).fill(ada.id))
    expect(seen.map(({ body }) => JSON.parse(body).length)).toEqual([50, 50, 20])
    const labels = Array.from({ length: 30 }, (_, at) => `${at} `.padEnd(50_000, 'x'))
    const made = await Promise.all(labels.map((text) => client.cell_create({ data: { text } })))
    expect(made.map(({ cell }) => (cell.data as { text: string }).text)).toEqual(labels)
    // One request of 1.5 MB was refused; its halves were not.
    expect(seen.slice(3).map(({ body }) => JSON.parse(body).length)).toEqual([30, 15, 15])
  })

  it('asks again for the answers that did not fit into one', async () => {
    const { client, seen } = await clientBehind([batch()])
    const sizes = Array.from({ length: 20 }, (_, at) => (at % 2 ? 1 : 2))
    const texts = await Promise.all(sizes.map((size) => client.large({ size })))
    expect(texts.map(({ length }) => length / 1_048_576)).toEqual(sizes)
    expect(seen).toHaveLength(2)
  })

  it('fails all calls of a request that fails, and ends only the one that is aborted', async () => {
    const { client, answer, seen } = await clientBehind([batch()])
    answer(page(502, '<html>'))
    const both = () => [client.try.cell_list(), client.try.account_verify()]
    for (const outcome of await Promise.all(both()))
      expect(outcome).toMatchObject({ error: { reason: 'transport_failed', status: 502 } })
    const stop = new AbortController()
    const aborted = client.try.cell_list({}, { signal: stop.signal })
    const [other] = both()
    stop.abort(new Error('enough'))
    expect(await aborted).toMatchObject({ error: { cause: { message: 'enough' } } })
    expect(await other).toMatchObject({ ok: true })
    expect(seen).toHaveLength(2)
  })

  it('leaves nothing on a signal that outlives the calls', async () => {
    const { watch, signals } = watched()
    const { client } = await clientBehind([watch, batch()])
    const { signal } = new AbortController()
    await Promise.all([client.account_verify({}, { signal }), client.account_verify({}, { signal })])
    expect(listenersOn(signals)).toEqual([0, 0])
  })

  it('below retry repeats the reads among the calls, each by itself', async () => {
    const { client, answer, ...proxy } = await clientBehind([retry(), batch()])
    answer(page(502, '<html>'))
    const outcomes = await Promise.all([
      client.try.account_verify(),
      client.try.cell_create({ data: {} }),
      client.try.cell_list(),
    ])
    expect(outcomes.map(({ ok }) => ok)).toEqual([true, false, true])
    expect(methods({ ...proxy, answer })).toEqual(['POST', 'GET', 'GET'])
  })
})
