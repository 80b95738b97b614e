import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { tokenOf } from '../../test/helpers/callers.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'
import { batch } from './batch.ts'
import { createClient } from './client.ts'
import { forRequest } from './request.ts'

const log = capturedLog()
let test: TestService
let [ada, bob]: TestAccount[] = []
beforeAll(async () => {
  test = await testService({ log: log.log, trusted_proxies: ['127.0.0.1'] })
  ada = await test.account()
  bob = await test.account()
})
afterAll(() => test.close())

const nobody = 'authentication_required'

describe('forRequest', () => {
  it('serves concurrent visitors from one client, each as themselves', async () => {
    const client = createClient({ url: test.url, jar: true, use: [batch()] })
    // A server that greets its visitors by name and signs them in, as a framework for pages would.
    const pages = createServer(async (request, response) => {
      const visitor = forRequest(client, request)
      const [, username, password] = (request.url ?? '').split('/').map(decodeURIComponent)
      if (username && password) await visitor.account.login({ username, password })
      const outcome = await visitor.try.account_verify()
      response.setHeader('set-cookie', visitor.setCookies)
      response.end(outcome.ok ? outcome.result.username : outcome.error.reason)
    })
    pages.listen(0, '127.0.0.1')
    await once(pages, 'listening')
    onTestFinished(() => void pages.close())
    const { port } = pages.address() as AddressInfo
    const visit = async (cookie = '', path = '') => {
      const response = await fetch(`http://127.0.0.1:${port}/${path}`, { headers: { cookie } })
      return [await response.text(), response.headers.getSetCookie()] as const
    }
    const both = [ada, bob] as TestAccount[]
    const signedIn = await Promise.all(
      both.map(({ username, password }) => visit('', `${username}/${encodeURIComponent(password)}`)),
    )
    expect(signedIn.map(([text]) => text)).toEqual(both.map(({ username }) => username))
    const cookies = signedIn.map(([, [cookie = '']]) => cookie.split(';', 1)[0])
    expect(cookies).toEqual([
      expect.stringMatching(/^svc_session=[\w-]/),
      expect.stringMatching(/^svc_session=[\w-]/),
    ])
    const visits = Array.from({ length: 20 }, (_, at) => visit(`theme; ${cookies[at % 2]}`))
    expect((await Promise.all(visits)).map(([text]) => text)).toEqual(
      visits.map((_, at) => both[at % 2]?.username),
    )
    expect(await visit()).toEqual([nobody, []])
    expect((await client.try.account_verify()).ok).toBe(false)
  })

  it('never acts with the credential of the client that it comes from', async () => {
    const { token, headers } = await tokenOf(test, ada as TestAccount)
    const { cookie } = ada as TestAccount
    const stranger = new Request('http://pages.test/')
    const clients = [
      createClient({ url: test.url, token }),
      createClient({ url: test.url, headers: { Authorization: headers.authorization } }),
      createClient({ url: test.url, headers: { Cookie: cookie } }),
      createClient({ url: test.url, jar: cookie }),
      createClient({ url: test.url, headers: { 'x-daemon-token': test.daemonToken.current } }),
    ]
    for (const client of clients)
      await expect(forRequest(client, stranger).account_verify()).rejects.toMatchObject({ reason: nobody })
  })

  it('passes on the address that it knows, and none that the visitor makes up', async () => {
    const client = createClient({ url: test.url, headers: { 'x-request-id': 'addressed' } })
    const request = new Request('http://pages.test/', { headers: { 'x-forwarded-for': '198.51.100.7' } })
    await forRequest(client, request).cell_list()
    await forRequest(client, request, { address: '203.0.113.9' }).cell_list()
    await forRequest(client, {
      headers: { 'x-forwarded-for': '198.51.100.7' },
      socket: { remoteAddress: '127.0.0.1' },
    }).cell_list()
    const ips = log.lines().flatMap(({ request_id, ip }) => (request_id === 'addressed' ? [ip] : []))
    expect(ips).toEqual(['127.0.0.1', '203.0.113.9', '198.51.100.7'])
  })

  it('works with a fetch that may not be called as a method, such as that of browsers and workerd', async () => {
    const strict = function (this: unknown, ...call: Parameters<typeof fetch>) {
      if (this !== undefined) throw new TypeError('Illegal invocation')
      return fetch(...call)
    }
    const client = createClient({ url: test.url, fetch: strict })
    const { username, password } = ada as TestAccount
    const visitor = forRequest(client, new Request('http://pages.test/'))
    await visitor.account.login({ username, password })
    expect(await visitor.account_verify()).toMatchObject({ username })
  })
})
