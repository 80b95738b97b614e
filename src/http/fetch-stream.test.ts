import { expect, it } from 'vitest'
import { signalRows, streamPath, writeRows } from '../../test/helpers/audit-streams.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { serviceForFile } from '../../test/helpers/service.ts'

const log = capturedLog()
const test = await serviceForFile({ audit_stream: true, log: log.log })
const admin = await test.account({ roles: ['admin'] })

/** The ways in which the streams of this file have ended so far. */
const ended = () => log.lines().flatMap(({ msg, reason }) => (msg === 'audit stream ended' ? [reason] : []))

async function open(init: RequestInit = {}) {
  const request = new Request(`http://embedding.example${streamPath}`, {
    ...init,
    headers: { cookie: admin.cookie },
  })
  const response = await test.service.fetch(request, { address: '127.0.0.1' })
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const text = new TextDecoder()
  return { response, reader, next: async () => text.decode((await reader.read()).value) }
}

it('an embedded service streams chunk by chunk, the opening first and alone', async () => {
  const { response, reader, next } = await open()
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
  expect(await next()).toBe(': connected\n\n')
  await writeRows(test, 1)
  expect(await next()).toMatch(/^retry: 3000\nid: \d+\ndata: \{"method":"note",.*\}\n\n$/)
  await reader.cancel()
})

it('a cancelled body ends the stream, and so does an aborted request', async () => {
  const before = ended().length
  const { reader } = await open()
  await reader.cancel()
  expect(ended().slice(before)).toEqual(['client_left'])
  const host = new AbortController()
  const aborted = await open({ signal: host.signal })
  await aborted.next()
  host.abort(new Error('the connection is gone'))
  await expect(aborted.reader.read()).rejects.toThrow('the connection is gone')
  expect(ended().slice(before)).toEqual(['client_left', 'client_left'])
})

it('a body that nobody reads is closed as slow; what it holds is bounded, its end among it', async () => {
  const before = ended().length
  const quick = await open()
  const slow = await open()
  while (ended().length === before) {
    await writeRows(test, 100, 8_000)
    signalRows(test)
    await quick.next()
  }
  expect(ended().slice(before)).toEqual(['slow_consumer'])
  let text = ''
  for (let chunk = await slow.reader.read(); !chunk.done; chunk = await slow.reader.read())
    text += Buffer.from(chunk.value)
  expect(text.length).toBeLessThan(4_000_000)
  expect(text.endsWith('event: close\ndata: {"reason":"slow_consumer"}\n\n')).toBe(true)
  await quick.reader.cancel()
})

it('a request that was aborted before its answer holds no stream', async () => {
  const before = ended().length
  const host = new AbortController()
  const opening = open({ signal: host.signal })
  host.abort(new Error('too late'))
  await expect(opening.then(({ reader }) => reader.read())).rejects.toThrow('too late')
  expect(ended().slice(before)).toEqual(['client_left'])
})

it('a query of very many keys is refused as quickly as it is read', { timeout: 20_000 }, async () => {
  const query = Array.from({ length: 130_000 }, (_, at) => at.toString(36)).join('&')
  const { cookie } = await test.account()
  const request = new Request(`http://embedding.example${streamPath}?${query}`, { headers: { cookie } })
  const response = await test.service.fetch(request, { address: '127.0.0.1' })
  expect([response.status, await response.json()]).toMatchObject([400, { issues: [{ path: ['0'] }] }])
})
