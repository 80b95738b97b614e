import { afterAll, describe, expect, it } from 'vitest'
import { freshIp, send } from '../../test/helpers/account-routes.ts'
import { resolveOptions } from '../config/config.ts'
import { type Routes, routeList, routes } from '../routes.ts'
import { type TestOptions, type TestService, testService } from '../testing/index.ts'
import { type Route, rateLimitOf } from './route.ts'

const services: TestService[] = []
afterAll(() => Promise.all(services.map((service) => service.close())))

const declared = (route: keyof Routes, options = {}) =>
  rateLimitOf(routes[route] as unknown as Route, resolveOptions(options).config)

describe('the rate limit that a route declares', () => {
  it('is one of the axes, or none', () => {
    const { config } = resolveOptions({})
    const all = Object.fromEntries(routeList.map((route) => [route.path, rateLimitOf(route, config)]))
    expect(all).toEqual({
      '/login': 'both',
      '/logout': undefined,
      '/second_factor': 'account',
      '/reauthenticate': 'both',
      '/password': 'both',
      '/verify': undefined,
      '/status': undefined,
      '/options': undefined,
      '/bootstrap': 'ip',
      '/signup': 'both',
      '/recover': 'both',
      '/ticket': 'ip',
      '/reset': 'ip',
      '/email_confirm': 'ip',
      '/passkey_begin': 'ip',
      '/passkey_finish': 'ip',
      '/oidc_start': 'ip',
      '/oidc_finish': 'ip',
    })
  })

  it('of /login and /password follows the setting of the account limiter', () => {
    for (const route of ['login', 'password'] as const) {
      expect(declared(route, { limit_login_account: '10/1800' })).toBe('both')
      expect(declared(route, { limit_login_account: 'off' })).toBe('ip')
      expect(declared(route, { limit_login_ip: 'off' })).toBe('account')
      expect(declared(route, { limit_login_ip: 'off', limit_login_account: 'off' })).toBeUndefined()
    }
  })

  it.each<[TestOptions, (i: number) => string | undefined, number[]]>([
    [{ limit_login_account: '2/900', limit_login_ip: 'off' }, () => freshIp(), [401, 401, 429, 429]],
    [{ limit_login_account: 'off', limit_login_ip: '3/900' }, () => '203.0.113.9', [401, 401, 401, 429]],
    [{ limit_login_account: 'off', limit_login_ip: 'off' }, () => '203.0.113.9', [401, 401, 401, 401]],
  ])('of /password is what its handler does: %j', async (options, ip, statuses) => {
    const test = await testService({ trusted_proxies: ['127.0.0.1'], ...options })
    services.push(test)
    const { cookie } = await test.account()
    const seen: number[] = []
    for (let i = 0; i < 4; i++) {
      const body = { current_password: 'wrong', new_password: 'another long password' }
      const from = ip(i)
      seen.push((await send(test, 'POST /password', { body, cookie, ...(from && { ip: from }) })).status)
    }
    expect(seen).toEqual(statuses)
  })
})
