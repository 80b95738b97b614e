import { describe, expect, it } from 'vitest'
import { bearer, daemonHeaders, tokenOf } from '../../test/helpers/callers.ts'
import { call, exchange, type Reply, rpc, send } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { testService } from '../testing/index.ts'
import { readCarriers } from './caller.ts'

const origin = 'http://localhost:5173'
const statements: string[] = []
const test = await serviceForFile({
  onStatement: (text) => statements.push(text),
})
const owner = await test.account()
const scripted = await test.account()
const keeper = await test.account({ roles: ['keeper'] })
const token = (await tokenOf(test, scripted)).token

/** The same text with another base64url character at the end. */
const otherEnd = (text: string): string => text.replace(/.$/, (end) => (end === 'A' ? 'B' : 'A'))
const verify = (headers: Record<string, string>) => rpc(test.url, call('account_verify'), headers)
const calledAs = ({ json }: Reply) => (json as { result?: { id: string } }).result?.id ?? null
const clears = ({ headers }: Reply) => /^svc_session=; Max-Age=0/.test(headers['set-cookie']?.[0] ?? '')

describe('of several carriers', () => {
  const cookies = ['none', 'valid', 'bad', 'dead'] as const
  const states = ['none', 'valid', 'invalid'] as const
  const contexts = ['none', 'origin', 'referer', 'empty referer'] as const
  type Case = {
    cookie: (typeof cookies)[number]
    api: (typeof states)[number]
    own: (typeof states)[number]
    context: (typeof contexts)[number]
  }
  const headersOf = ({ cookie, api, own, context }: Case, dead: string): Record<string, string> => ({
    ...(cookie !== 'none' && {
      cookie: { valid: owner.cookie, bad: otherEnd(owner.cookie), dead }[cookie],
    }),
    ...(api !== 'none' && bearer(api === 'valid' ? token : otherEnd(token))),
    ...(own !== 'none' && {
      'x-daemon-token': own === 'valid' ? test.daemonToken.current : 'x'.repeat(43),
    }),
    ...(context === 'origin' && { origin }),
    ...(context === 'referer' && { referer: `${origin}/page` }),
    ...(context === 'empty referer' && { referer: '' }),
  })

  it.each(cookies)(
    'beside a session cookie that is %s: daemon before session before bearer, a page has only its cookie',
    async (cookie) => {
      const gone = await test.account()
      await gone.client.account_session_revoke_all()
      for (const api of states)
        for (const own of states)
          for (const context of contexts) {
            const sent = { cookie, api, own, context }
            const inPage = context !== 'none'
            const winner =
              own === 'valid' && !inPage
                ? keeper.id
                : cookie === 'valid'
                  ? owner.id
                  : api === 'valid' && !inPage
                    ? scripted.id
                    : null
            const reply = await verify(headersOf(sent, gone.cookie))
            expect({ ...sent, caller: calledAs(reply), status: reply.status, clears: clears(reply) }).toEqual(
              {
                ...sent,
                caller: winner,
                status: winner ? 200 : 401,
                clears: cookie === 'bad',
              },
            )
          }
    },
  )

  it('a losing one is not looked up, and so not stamped', async () => {
    const { id, headers } = await tokenOf(test, scripted)
    await test.service.app.lastUsed.flush()
    statements.length = 0
    for (const winner of [{ cookie: owner.cookie }, daemonHeaders(test)])
      await verify({ ...headers, ...winner })
    await test.service.app.lastUsed.flush()
    expect(statements.filter((text) => text.includes('api_token'))).toEqual([])
    expect(statements.filter((text) => text.includes('auth_session'))).toHaveLength(1)
    const [row] = await test.service.app.db.rows(sql`
      select last_used_at, last_used_ip from api_token where id = ${id}`)
    expect(row).toEqual({ last_used_at: null, last_used_ip: null })
  })

  it('an invalid one changes nothing in the answer to a request without a valid one', async () => {
    const bare = async (headers: Record<string, string>) => {
      const { status, text, headers: got } = await verify({ 'x-request-id': 'same', ...headers })
      const { date: _date, 'x-svc-auth-debug': _debug, ...rest } = got
      return JSON.stringify([status, text, rest])
    }
    const anonymous = await bare({})
    const unacceptable: Record<string, string>[] = [
      bearer(otherEnd(token)),
      bearer('x'),
      { authorization: 'Basic eDp5' },
      { ...bearer(token), origin },
      { ...bearer(token), origin: 'https://evil.example' },
      { ...bearer(token), referer: '' },
      { ...daemonHeaders(test), origin },
      { 'x-daemon-token': 'short' },
    ]
    for (const headers of unacceptable) expect([headers, await bare(headers)]).toEqual([headers, anonymous])
  })
})

describe('a bearer', () => {
  const reading = (authorization: string) =>
    readCarriers((name) => ({ authorization })[name], test.service.app.sessionCookie).carriers.bearer

  it.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('may have its scheme as %s', (scheme) => {
    expect(reading(`${scheme} ${token}`)).toBe(token)
  })

  it.each<[string, (token: string) => string]>([
    ['two spaces', (token) => `Bearer  ${token}`],
    ['a tab', (token) => `Bearer\t${token}`],
    ['no space', (token) => `Bearer${token}`],
    ['a space before', (token) => ` Bearer ${token}`],
    ['a space behind', (token) => `Bearer ${token} `],
    ['a line end behind', (token) => `Bearer ${token}\n`],
    ['another scheme', (token) => `Token ${token}`],
    ['no scheme', (token) => token],
    ['one character cut', (token) => `Bearer ${token.slice(0, -1)}`],
    ['one character more', (token) => `Bearer ${token}A`],
    ['its prefix in capitals', (token) => `Bearer ${token.replace('secret', 'SECRET')}`],
    ['a character that base64url has not', (token) => `Bearer ${token.slice(0, -1)}+`],
    ['a second token', (token) => `Bearer ${token}, Bearer ${token}`],
  ])('with %s counts as absent', (_what, form) => {
    expect(reading(form(token))).toBeUndefined()
  })

  it('with any one character of the secret changed is invalid', async () => {
    const start = 'secret_svc_token_'.length
    for (let at = start; at < token.length; at += 7) {
      const changed = otherEnd(token.slice(0, at + 1)) + token.slice(at + 1)
      expect((await verify(bearer(changed))).status).toBe(401)
    }
  })

  it('is trimmed of white space around the whole value, as every header is, but nowhere else', async () => {
    const status = async (authorization: string) => {
      const got = await exchange(
        test.url,
        `GET /api/account/verify HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization:${authorization}\r\n\r\n`,
      )
      return Number(/^HTTP\/1\.1 (\d+)/.exec(got)?.[1])
    }
    expect(await status(`  Bearer ${token}  `)).toBe(200)
    expect(await status(` Bearer  ${token}`)).toBe(401)
    expect(await status(` Bearer\t${token}`)).toBe(401)
  })

  it('sent twice counts as absent, and so does a daemon token', async () => {
    const path = '/api/account/verify'
    const twice = async (headers: Record<string, string | string[]>) =>
      (await send(test.url, { path, headers })).status
    expect(await twice({ authorization: [`Bearer ${token}`, `Bearer ${token}`] })).toBe(401)
    expect(await twice({ authorization: [`Bearer ${token}`, 'Basic x'], cookie: owner.cookie })).toBe(200)
    expect(await twice({ 'x-daemon-token': [test.daemonToken.current, test.daemonToken.current] })).toBe(401)
  })
})

describe('the debug header', () => {
  const debug = async (headers: Record<string, string>, url = test.url) =>
    (await rpc(url, call('account_verify'), headers)).headers['x-svc-auth-debug']
  const discardedBearer = 'bearer_discarded_browser_context'
  const discardedDaemon = 'daemon_token_discarded_browser_context'

  it('names the credentials that a request from a page lost, whatever the status', async () => {
    for (const [context, session] of [
      [{ origin }, {}],
      [{ referer: '' }, {}],
      [{ origin }, { cookie: owner.cookie }],
    ]) {
      const inPage = { ...context, ...session } as Record<string, string>
      expect(await debug({ ...inPage, ...bearer(token) })).toBe(discardedBearer)
      expect(await debug({ ...inPage, authorization: 'bearer nonsense' })).toBe(discardedBearer)
      expect(await debug({ ...inPage, ...daemonHeaders(test) })).toBe(discardedDaemon)
      expect(await debug({ ...inPage, ...bearer(token), ...daemonHeaders(test) })).toBe(
        `${discardedBearer}, ${discardedDaemon}`,
      )
      expect(await debug({ ...inPage, authorization: 'Basic eDp5' })).toBeUndefined()
      expect(await debug(inPage)).toBeUndefined()
    }
    expect(await debug(bearer(token))).toBeUndefined()
    const evil = { origin: 'https://evil.example', cookie: owner.cookie, ...bearer(token) }
    expect([(await verify(evil)).status, await debug(evil)]).toEqual([403, discardedBearer])
  })

  it('is absent in production', async () => {
    await using live = await testService({ env: 'production', argon2: '19456,2,1' })
    expect(await debug({ origin: live.url, ...bearer(token) }, live.url)).toBeUndefined()
  })
})
