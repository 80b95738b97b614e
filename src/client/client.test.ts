import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { afterEach, describe, expect, expectTypeOf, it, onTestFinished, vi } from 'vitest'
import { tokenOf } from '../../test/helpers/callers.ts'
import { cutOff, page, reverseProxy } from '../../test/helpers/reverse-proxy.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { auditStream } from './audit-stream.ts'
import { CellkeepError, createClient, TransportError } from './client.ts'

const test = await serviceForFile()
const ada = await test.account()
afterEach(() => void vi.restoreAllMocks())

const badGateway = page(502, '<html>502 Bad Gateway</html>', { 'content-type': 'text/html' })

describe('a client', () => {
  it('reaches a service below a path, with and without a slash at its end', async () => {
    const { url } = await reverseProxy(test.url)
    for (const base of [url, `${url}/`, `${test.url}/`]) {
      const client = createClient({ url: base, headers: { cookie: ada.cookie } })
      expect(await client.account_verify()).toMatchObject({ id: ada.id })
      expect(await client.account.status()).toMatchObject({ account: { id: ada.id } })
    }
  })

  it('signs in with a token, which a session cookie in its headers beats', async () => {
    const eve = await test.account()
    const { token } = await tokenOf(test, eve)
    expect(await createClient({ url: test.url, token }).account_verify()).toMatchObject({ id: eve.id })
    const both = createClient({ url: test.url, token, headers: { cookie: ada.cookie } })
    expect(await both.account_verify()).toMatchObject({ id: ada.id })
  })

  it('is no plain object, so that stores that wrap those, such as `$state` of Svelte, leave it as it is', () => {
    const client = createClient({ url: test.url })
    for (const one of [client, client.try, client.account]) expect(Object.getPrototypeOf(one)).toBeNull()
  })

  it('says in its messages what was refused, why and where', async () => {
    const long = await ada.client.try.cell_create({ kind: '', data: { label: 1 } as never })
    if (long.ok || long.error.reason !== 'invalid_params') throw new Error('It must be refused.')
    const issues = long.error.data.issues as { path: string[]; message: string }[]
    expect(issues.length).toBeGreaterThan(0)
    expect(long.error.message).toBe(
      `cell_create: invalid_params: ${issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')}`,
    )
    await expect(ada.client.cell_get({ id: ada.id })).rejects.toThrow(/^cell_get: cell_not_found$/)
    const { username } = ada
    await expect(ada.client.account.login({ username, password: 'wrong' })).rejects.toThrow(
      /^login: invalid_credentials$/,
    )
  })
})

it('follows no redirect, which could take a password or a token to another host', async () => {
  const taken: (string | undefined)[] = []
  const thief = createHttpServer((request, response) => {
    taken.push(request.url)
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(thief, 'listening')
  onTestFinished(() => void thief.close())
  const location = `http://127.0.0.1:${(thief.address() as AddressInfo).port}/stolen`
  const { url, answer } = await reverseProxy(test.url)
  const client = createClient({ url, headers: { 'x-daemon-token': 'secret' } })
  const { username, password } = ada
  for (const status of [301, 303, 307, 308]) {
    const calls = [
      () => client.account.login({ username, password }),
      () => client.account.status(),
      () => client.cell_list(),
      () => auditStream(client, { after: 0 }).next(),
    ]
    for (const ask of calls) {
      answer(page(status, '', { location }))
      await expect(ask()).rejects.toMatchObject({ reason: 'transport_failed', status })
    }
  }
  expect(taken).toEqual([])
})

it('does not take an empty page for the answer of a route, except where the answer is empty', async () => {
  const { url, answer } = await reverseProxy(test.url)
  const client = createClient({ url, headers: { cookie: ada.cookie } })
  answer(page(200, ''))
  await expect(client.account.status()).rejects.toMatchObject({ reason: 'transport_failed', status: 200 })
  expect(await client.account.verify()).toBeNull()
})

describe('without an answer of the service', () => {
  const answers = {
    'a page of a proxy': [badGateway, 502, '<html>502 Bad Gateway</html>'],
    'no body': [page(200, ''), 200, ''],
    'JSON of something else': [page(503, '{"message":"no upstream"}'), 503, '{"message":"no upstream"}'],
    'JSON with an error of something else': [page(401, '{"error":"Not for you"}'), 401, /Not for you/],
    'JSON that is no object': [page(200, '"fine"'), 200, '"fine"'],
    'half an answer': [cutOff, 200, ''],
    'a lost connection': [(response: { destroy(): void }) => response.destroy(), 0, ''],
  } as const

  it.each(Object.entries(answers))('%s is a TransportError, thrown or returned', async (_name, expected) => {
    const [answer, status, text] = expected
    const { url, answer: queue } = await reverseProxy(test.url)
    const client = createClient({ url })
    queue(answer, answer)
    const outcome = await client.try.cell_list()
    if (outcome.ok || outcome.error.reason !== 'transport_failed') throw new Error('It must fail.')
    expectTypeOf(outcome.error.text).toEqualTypeOf<string>()
    expect(outcome.error).toBeInstanceOf(TransportError)
    expect(outcome.error).toBeInstanceOf(CellkeepError)
    expect(outcome.error).toMatchObject({ name: 'TransportError', status })
    expect(outcome.error.text).toMatch(text)
    expect(outcome.error.message).toMatch(/^cell_list: transport_failed: ./)
    await expect(client.cell_list()).rejects.toMatchObject({ reason: 'transport_failed', status })
  })

  it('the same of the REST routes; only the beginning of what came is kept', async () => {
    const { url, answer } = await reverseProxy(test.url)
    answer(page(502, 'x'.repeat(100_000)))
    const error = await createClient({ url })
      .account.status()
      .catch((error: unknown) => error)
    expect(error).toMatchObject({ reason: 'transport_failed', status: 502, text: 'x'.repeat(500) })
  })

  it('a service that cannot be reached has status 0 and its cause', async () => {
    const closed = createServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const { port } = closed.address() as AddressInfo
    closed.close()
    await once(closed, 'close')
    const error = await createClient({ url: `http://127.0.0.1:${port}` })
      .cell_list()
      .catch((error: unknown) => error)
    expect(error).toMatchObject({ status: 0, cause: { cause: { code: 'ECONNREFUSED' } } })
  })
})

describe('timeout and signal', () => {
  const never = (): void => {}

  it('end a call that gets no answer, from the client or the call', async () => {
    const { url, answer } = await reverseProxy(test.url)
    const failed = (name: string) => ({ ok: false, error: { reason: 'transport_failed', cause: { name } } })
    answer(never, never, never, never)
    expect(await createClient({ url, timeout: 20 }).try.cell_list()).toMatchObject(failed('TimeoutError'))
    expect(await createClient({ url }).try.cell_list({}, { timeout: 20 })).toMatchObject(
      failed('TimeoutError'),
    )
    const stop = new AbortController()
    const calls = [
      createClient({ url, signal: stop.signal }).try.cell_list(),
      createClient({ url }).try.cell_list({}, { signal: stop.signal }),
    ]
    stop.abort()
    for (const call of calls) expect(await call).toMatchObject(failed('AbortError'))
    await expect(
      createClient({ url }).account.status(undefined, { signal: stop.signal }),
    ).rejects.toMatchObject({ reason: 'transport_failed' })
  })

  it('may be longer than a timer can be', async () => {
    for (const timeout of [2 ** 31, 1e300, Number.POSITIVE_INFINITY]) {
      const client = createClient({ url: test.url, timeout, headers: { cookie: ada.cookie } })
      expect(await client.account_verify()).toMatchObject({ id: ada.id })
    }
  })

  it('of a call replaces the timeout of the client', async () => {
    const patient = createClient({ url: test.url, timeout: 1, headers: { cookie: ada.cookie } })
    expect(await patient.account_verify({}, { timeout: 30_000 })).toMatchObject({ id: ada.id })
  })
})

describe('a login outside a browser', () => {
  const login = () => ({ username: ada.username, password: ada.password })

  it('is kept by a client with a jar until it logs out', async () => {
    const client = createClient({ url: test.url, jar: true })
    await client.account.login(login())
    expect(await client.account_verify()).toMatchObject({ id: ada.id })
    await client.account.logout()
    await expect(client.account_verify()).rejects.toMatchObject({ reason: 'authentication_required' })
  })

  it('ends by a request that says that it is JSON, as frameworks ask of every POST of a program', async () => {
    const { url, seen } = await reverseProxy(test.url)
    const client = createClient({ url, jar: true })
    await client.account.login(login())
    await client.account.logout()
    expect(seen.map(({ headers }) => headers['content-type'])).toEqual([
      'application/json',
      'application/json',
    ])
  })

  it('is not kept by another, which says so once: it may act for several people', async () => {
    const warned = vi.spyOn(console, 'warn').mockReturnValue(undefined)
    const client = createClient({ url: test.url })
    await client.account.login(login())
    await client.account.login(login())
    await expect(client.account_verify()).rejects.toMatchObject({ reason: 'authentication_required' })
    expect(warned.mock.calls).toEqual([[expect.stringMatching(/jar.*docs\/client\.md/)]])
  })

  it('keeps cookies of a proxy beside that of the session', async () => {
    const { url, answer, seen } = await reverseProxy(test.url)
    const client = createClient({ url, jar: ada.cookie })
    answer(page(502, '', { 'set-cookie': 'route=b; Path=/' }))
    await client.try.cell_list()
    expect(await client.account_verify()).toMatchObject({ id: ada.id })
    expect(seen[1]?.headers.cookie).toBe(`${ada.cookie}; route=b`)
  })
})
