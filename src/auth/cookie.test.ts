import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createSessionCookie, sessionIdOf } from './cookie.ts'
import { createKeyRing } from './key-ring.ts'
import { randomToken } from './secrets.ts'

const oldKey = 'old-key-old-key-old-key-old-key-1'
const newKey = 'new-key-new-key-new-key-new-key-2'
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const instant = Date.UTC(2026, 0, 2)
const expiresAt = '2026-02-01T00:00:00.999Z'
const expires = Date.UTC(2026, 1, 1) / 1000

function cookieOf(keys = [oldKey], options: { hostPrefix?: boolean; secure?: boolean; at?: number } = {}) {
  const { hostPrefix = false, secure = true, at = instant } = options
  return createSessionCookie(createKeyRing(keys), { secure, hostPrefix, now: () => at })
}
const cookie = cookieOf()
const token = randomToken()
/** The cookie pair as a browser sends it back. */
const pairOf = (setCookie: string): string => setCookie.split(';')[0] as string
const pair = pairOf(cookie.issue(token, expiresAt))
const value = pair.slice('svc_session='.length)
/** A cookie with a valid signature over any `expires` text. */
const signedWith = (text: string, key = oldKey): string => {
  const mac = createHmac('sha256', key).update(`svc_session:${token}.${text}`).digest('base64url')
  return `svc_session=${token}.${text}.${mac}`
}
const good = { state: 'good', sessionId: sessionIdOf(token), expires }

describe('Set-Cookie', () => {
  test('carries token, floored expiry and mac with all attributes', () => {
    expect(cookie.issue(token, expiresAt)).toBe(
      `${signedWith(String(expires))}; Max-Age=2592000; Path=/; HttpOnly; Secure; SameSite=Strict`,
    )
    expect(cookie.clear()).toBe('svc_session=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Strict')
  })

  test('Secure and the host prefix follow the options', () => {
    const insecure = cookieOf([oldKey], { secure: false })
    expect(insecure.issue(token, expiresAt)).toMatch(/; Max-Age=2592000; Path=\/; HttpOnly; SameSite=Strict$/)
    expect(insecure.clear()).toBe('svc_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict')
    const prefixed = cookieOf([oldKey], { hostPrefix: true })
    expect(prefixed.name).toBe('__Host-svc_session')
    expect(prefixed.read(pairOf(prefixed.issue(token, expiresAt)))).toEqual(good)
    expect(prefixed.read(pair)).toEqual({ state: 'none' })
    expect(cookie.read(pairOf(prefixed.issue(token, expiresAt)))).toEqual({ state: 'none' })
  })
})

describe('reading', () => {
  test('a good cookie gives session id and expiry', () => {
    expect(cookie.read(pair)).toEqual(good)
    expect(cookie.read(`a=b; ${pair}; c=d`)).toEqual(good)
    expect(cookie.read(`a=b;${pair}`)).toEqual(good)
  })

  test('no cookie of this name is none', () => {
    for (const header of [
      undefined,
      '',
      ';',
      'a=b',
      'svc_session',
      'SVC_SESSION=x',
      'xsvc_session=x',
      'a=svc_session=x',
    ])
      expect(cookie.read(header)).toEqual({ state: 'none' })
  })

  test('the first of this name counts', () => {
    expect(cookie.read(`${pair}; svc_session=garbage`)).toEqual(good)
    expect(cookie.read(`svc_session=garbage; ${pair}`)).toEqual({ state: 'bad' })
    expect(cookie.read(`svc_session=; ${pair}`)).toEqual({ state: 'bad' })
  })

  test('a name with white space that browsers keep is not our name', () => {
    for (const space of ['\u00a0', '\u0085', '\u000b', '\u000c', '\u2000', '\ufeff'])
      expect(cookie.read(`${space}${pair}`)).toEqual({ state: 'none' })
    expect(cookie.read(pair.replace('=', ' ='))).toEqual({ state: 'none' })
  })

  test('rotation: the old key still reads, a dropped key does not', () => {
    expect(cookieOf([newKey, oldKey]).read(pair)).toEqual(good)
    expect(cookieOf([newKey]).read(pair)).toEqual({ state: 'bad' })
  })

  test('expires with the server clock', () => {
    expect(cookieOf([oldKey], { at: expires * 1000 - 1 }).read(pair)).toEqual(good)
    expect(cookieOf([oldKey], { at: expires * 1000 }).read(pair)).toEqual({ state: 'bad' })
  })

  test.each([
    '0',
    '01769904000',
    '+1769904000',
    '-1',
    '1769904000.0',
    '1e10',
    '',
    ' 1769904000',
    '1234567890123',
  ])('expires %j is bad even when signed', (text) => {
    expect(cookie.read(signedWith(text))).toEqual({ state: 'bad' })
  })

  test('expires of 12 digits is good', () => {
    expect(cookie.read(signedWith('999999999999'))).toEqual({ ...good, expires: 999_999_999_999 })
  })

  test('any one character changed to any other of the alphabet is bad, everywhere', () => {
    for (let i = 0; i < value.length; i++) {
      for (const other of `${alphabet}.`) {
        if (other === value[i]) continue
        const changed = value.slice(0, i) + other + value.slice(i + 1)
        expect(cookie.read(`svc_session=${changed}`), changed).toEqual({ state: 'bad' })
      }
    }
  })

  test('any byte in place of any other, anything appended, anything cut is bad', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: value.length - 1 }),
        fc.nat({ max: 255 }),
        fc.nat({ max: 255 }),
        (i, byte, more) => {
          const other = String.fromCharCode(byte)
          const changed = value.slice(0, i) + other + value.slice(i + 1)
          if (changed !== value) expect(cookie.read(`svc_session=${changed}`)).toEqual({ state: 'bad' })
          expect(cookie.read(`svc_session=${value.slice(0, i)}`)).toEqual({ state: 'bad' })
          expect(cookie.read(`svc_session=${value.slice(i + 1)}`)).toEqual({ state: 'bad' })
          const end = String.fromCharCode(more)
          if (end !== ';') expect(cookie.read(`${pair}${end}`)).toEqual({ state: 'bad' })
        },
      ),
    )
    expect(cookie.read(`${pair}.x`)).toEqual({ state: 'bad' })
    expect(cookie.read(`svc_session="${value}"`)).toEqual({ state: 'bad' })
    expect(cookie.read(`svc_session=${encodeURIComponent(value).replace('.', '%2E')}`)).toEqual({
      state: 'bad',
    })
  })

  test('the expiries of two cookies cannot be swapped', () => {
    const later = pairOf(cookie.issue(randomToken(), '2026-03-01T00:00:00.000Z'))
    const [, expiresLater] = later.split('.')
    const [head, , mac] = pair.split('.')
    expect(cookie.read(`${head}.${expiresLater}.${mac}`)).toEqual({ state: 'bad' })
  })

  test('the results for at most the latest 2000 cookies are remembered', () => {
    const ring = createKeyRing([oldKey])
    let checks = 0
    const mac = {
      sign: ring.sign,
      verify: (text: string, given: string) => {
        checks += 1
        return ring.verify(text, given)
      },
    }
    const own = createSessionCookie(mac, { secure: true, hostPrefix: false, now: () => instant })
    const pairs = Array.from({ length: 2001 }, () => pairOf(own.issue(randomToken(), expiresAt)))
    const read = (pair: string) => {
      expect(own.read(pair).state).toBe('good')
      return checks
    }
    expect([pairs[0], pairs[0]].map((one) => read(one as string))).toEqual([1, 1])
    for (const one of pairs) read(one)
    expect(checks).toBe(2001)
    expect([pairs.at(-1), pairs[0]].map((one) => read(one as string))).toEqual([2001, 2002])
  })
})
