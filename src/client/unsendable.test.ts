import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'
import { batch } from './batch.ts'
import { createClient } from './client.ts'
import { createLive, type LiveClient, type LiveSettings } from './live.ts'
import { retry } from './retry.ts'

let test: TestService
let ada: TestAccount
beforeAll(async () => {
  test = await testService()
  ada = await test.account()
})
afterAll(() => test.close())

function liveOf(settings: LiveSettings = {}): LiveClient {
  const live = createLive({ url: test.url, headers: { cookie: ada.cookie }, ...settings })
  onTestFinished(() => live.close())
  return live
}

/** JSON has no form for it. */
const unsendable = { data: { count: 1n } }

it('a call of a live client that JSON cannot represent fails alone, before and after the connection opens', async () => {
  const live = liveOf()
  const opened = new Promise((resolve) => live.on('open', resolve))
  const bad = live.cell_create(unsendable)
  const good = live.account_verify()
  await expect(bad).rejects.toThrow(TypeError)
  expect(await good).toMatchObject({ id: ada.id })
  expect(await opened).toEqual({ again: false })
  await expect(live.cell_create(unsendable)).rejects.toThrow(TypeError)
})

it('a call whose input nests too deep is refused, with a live client too', async () => {
  let data: Record<string, unknown> = {}
  for (let level = 0; level < 100; level++) data = { data }
  const refusal = { ok: false, error: { reason: 'invalid_request', data: { detail: 'too_deep' } } }
  expect(await ada.client.try.cell_create({ data })).toMatchObject(refusal)
  expect(await liveOf().try.cell_create({ data })).toMatchObject(refusal)
}, 5_000)

it('a call of a batch that JSON cannot represent fails alone', async () => {
  const client = createClient({ url: test.url, headers: { cookie: ada.cookie }, use: [batch()] })
  const [good, bad] = await Promise.all([client.try.account_verify(), client.try.cell_create(unsendable)])
  expect(good).toMatchObject({ ok: true, result: { id: ada.id } })
  expect(bad).toMatchObject({ ok: false, error: { status: 0, cause: expect.any(TypeError) } })
})

it.each([{}, { deadline_ms: 10_000 }])('nor is one repeated, with retry(%o)', async (options) => {
  let sent = 0
  const fetch = async () => {
    sent++
    return new Response('{}')
  }
  const client = createClient({ url: test.url, fetch, use: [retry(options)] })
  const unsent = { ok: false, error: { status: 0, cause: expect.any(TypeError) } }
  expect(await client.try.cell_create(unsendable)).toMatchObject(unsent)
  expect(await client.try.cell_get({ id: 1n as never })).toMatchObject(unsent)
  expect(sent).toBe(0)
})

it('a call of a batch that is aborted before the batch leaves is not carried out', async () => {
  const client = createClient({ url: test.url, headers: { cookie: ada.cookie }, use: [batch()] })
  const { signal } = new AbortController()
  const leaving = new AbortController()
  const calls = [signal, leaving.signal, signal].map((signal, nth) =>
    client.try.cell_create({ kind: 'batched', data: { nth } }, { signal }),
  )
  leaving.abort(new Error('left'))
  expect(await Promise.all(calls)).toMatchObject([
    { ok: true },
    { ok: false, error: { status: 0, cause: leaving.signal.reason } },
    { ok: true },
  ])
  const { cells } = await ada.client.cell_list({ kind: 'batched' })
  expect(cells.map(({ data }) => data.nth).sort()).toEqual([0, 2])
})

it.each([
  ['the global WebSocket of Node', globalThis.WebSocket as never],
  ['the class of ws', WebSocket as never],
])('a closed live client hears nothing more, with %s', async (_name, Class) => {
  const live = liveOf({ WebSocket: Class })
  await live.account_verify()
  const heard: unknown[] = []
  const closed = new Promise((resolve) => live.on('closed', resolve))
  live.on('role_grant_revoke', ({ role }) => {
    heard.push(role)
    live.close()
  })
  const { id } = (await ada.client.cell_create({ data: {} })).cell
  // Both arrive in one packet.
  await test.service.transaction({ event: 'role_grant_revoke', via: 'test' }, async ({ notify }) => {
    for (const role of ['one', 'two'])
      notify(ada.id, 'role_grant_revoke', { role_grant_id: id, role, scope_id: null })
  })
  expect(await closed).toBe('closed')
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(heard).toEqual(['one'])
})
