import { expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'

/** `service.fetch` in hosts whose requests differ from those of Node. */

const test = await serviceForFile()
const host = { address: '127.0.0.1' }

it.each([
  ['http://embedding.example/ready?x=1#y', 200],
  ['/ready?x=1', 200],
  ['http://[::1/ready', 200],
  ['//evil.example/ready', 404],
  ['/ready%00', 404],
])(
  'a request whose URL is %s, as Bun gives it to one with such a Host, gets an answer',
  async (url, status) => {
    const request = Object.defineProperty(new Request('http://x/'), 'url', { value: url })
    expect((await test.service.fetch(request, host)).status).toBe(status)
  },
)

/** A host that cuts the connection when the body is cancelled, or left unread. */
function upload(path: string, chunks: number, headers: Record<string, string> = {}) {
  const seen = { isCut: false, isRead: false }
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await new Promise((resolve) => setImmediate(resolve))
      if (chunks-- > 0) return controller.enqueue(new Uint8Array(65_536))
      seen.isRead = true
      controller.close()
    },
    cancel() {
      seen.isCut = true
    },
  })
  const init = {
    method: 'POST',
    duplex: 'half',
    body,
    headers: { 'content-type': 'application/json', ...headers },
  }
  return { request: new Request(`http://x${path}`, init as RequestInit), seen }
}

it.each([
  ['too large', '/api/rpc', {}, 413],
  ['declared as too large', '/api/rpc', { 'content-length': '3276800' }, 413],
  ['of a bad credential', '/api/rpc', { authorization: `Bearer secret_svc_token_${'x'.repeat(43)}` }, 401],
  ['for another path', '/api/other', {}, 404],
])('the rest of a long body %s is read before it is answered', async (_why, path, headers, status) => {
  const { request, seen } = upload(path, 50, headers)
  expect((await test.service.fetch(request, host)).status).toBe(status)
  expect(seen).toEqual({ isCut: false, isRead: true })
})

it('a body without end is answered all the same', async () => {
  const { request, seen } = upload('/api/rpc', Number.POSITIVE_INFINITY)
  expect((await test.service.fetch(request, host)).status).toBe(413)
  expect(seen).toEqual({ isCut: false, isRead: false })
})

it('a body whose chunks are always ready does not keep others waiting while its rest is discarded', async () => {
  const began = performance.now()
  let isServing = false
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      // Ends after a while, as no timer would run in a process that does nothing else.
      if (isServing || performance.now() - began > 10_000) return controller.close()
      controller.enqueue(new Uint8Array(65_536))
    },
  })
  const request = new Request('http://x/nothing', { method: 'POST', body, duplex: 'half' } as RequestInit)
  const answer = test.service.fetch(request, host)
  setTimeout(() => {
    isServing = true
  }, 50)
  expect((await answer).status).toBe(404)
  expect(isServing).toBe(true)
})

it('a request that is aborted before its body has ended is over', { timeout: 20_000 }, async () => {
  const client = new AbortController()
  const arrived = Promise.withResolvers<void>()
  let isCancelled = false
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        controller.enqueue(Buffer.from('{"jsonrpc":'))
        // The next chunk never comes.
        arrived.resolve()
        return new Promise(() => {})
      },
      cancel() {
        isCancelled = true
      },
    },
    { highWaterMark: 0 },
  )
  const headers = { 'content-type': 'application/json' }
  const init = { method: 'POST', duplex: 'half', body, headers, signal: client.signal }
  const answer = test.service.fetch(new Request('http://x/api/rpc', init as RequestInit), host)
  await arrived.promise
  client.abort()
  expect((await answer).status).toBe(400)
  expect([isCancelled, test.service.app.tally.running]).toEqual([true, 0])
})
