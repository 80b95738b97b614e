import { describe, expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { testService } from '../testing/index.ts'

const test = await serviceForFile({ home_page: true })

const get = (headers: Record<string, string> = {}, method = 'GET') =>
  fetch(`${test.url}/`, { headers, method })

describe('/', () => {
  it('answers programs with JSON', async () => {
    const response = await get()
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(await response.json()).toEqual({
      service: 'cellkeep',
      bootstrap_available: expect.any(Boolean),
      paths: {
        rpc: '/api/rpc',
        account: '/api/account',
        ws: '/api/ws',
        health: '/health',
        ready: '/ready',
      },
    })
  })

  it('answers browsers with a page that runs no script and takes its style from itself alone', async () => {
    const response = await get({ accept: 'text/html,application/xhtml+xml,*/*;q=0.8' })
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(response.headers.get('vary')).toBe('Accept')
    expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/)
    const text = await response.text()
    expect(text).toContain('<h1>Cellkeep</h1>')
    expect(text).toContain('/api/rpc')
    expect(text).not.toMatch(/<script|style=/)
  })

  it('is the same for everybody, whatever the origin and the cookie', async () => {
    const { cookie } = await test.account()
    const stranger = await get({ cookie: 'svc_session=forged', origin: 'https://elsewhere.example' })
    expect([stranger.status, stranger.headers.get('set-cookie')]).toEqual([200, null])
    expect(await stranger.text()).toBe(await (await get({ cookie })).text())
  })

  it('takes GET and HEAD only', async () => {
    expect((await get({}, 'HEAD')).status).toBe(200)
    expect((await get({}, 'POST')).status).toBe(405)
  })

  it('is absent in a library that did not ask for it', async () => {
    await using bare = await testService()
    expect((await fetch(`${bare.url}/`)).status).toBe(404)
  })
})
