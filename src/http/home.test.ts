import { describe, expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { testService } from '../testing/index.ts'

const test = await serviceForFile({ pages: true })

const get = (headers: Record<string, string> = {}, method = 'GET') =>
  fetch(`${test.url}/`, { headers, method })

describe('/', () => {
  it('answers programs with JSON', async () => {
    const response = await get()
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('vary')).toBe('Accept')
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

  it('takes GET and HEAD only', async () => {
    expect((await get({}, 'HEAD')).status).toBe(200)
    expect((await get({}, 'POST')).status).toBe(405)
  })

  it('is absent in a library that did not ask for it', async () => {
    await using bare = await testService()
    expect((await fetch(`${bare.url}/`)).status).toBe(404)
  })
})
