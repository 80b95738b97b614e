import type { Mac } from './key-ring.ts'
import { sha256Hex } from './secrets.ts'

export type SessionCookieOptions = {
  /** False only where the configuration permits it: on a loopback host. */
  secure: boolean
  /** Names the cookie `__Host-svc_session`, which browsers tie to the host. */
  hostPrefix: boolean
  /** Server clock in milliseconds. */
  now?: () => number
}

/** The result of reading a Cookie header; a `bad` cookie counts as absent and the reply clears it. */
export type CookieReading = { state: 'none' } | { state: 'bad' } | Good
type Good = {
  state: 'good'
  sessionId: string
  /** Unix seconds: the row's expiry, floored. */
  expires: number
}

export interface SessionCookie {
  name: string
  /** The Set-Cookie value for a new session; `expiresAt` is the row's, as an ISO string. */
  issue(token: string, expiresAt: string): string
  /** The Set-Cookie value that removes the cookie. */
  clear(): string
  /** Reads the Cookie header of a request; the first cookie of this name counts. */
  read(cookieHeader: string | undefined): CookieReading
}

/** What a browser sends back as `Cookie` for a `Set-Cookie` value. */
export const sentBack = (setCookie: string): string => setCookie.slice(0, setCookie.indexOf(';'))

/** The id under which a session is stored; the token itself is not stored. */
export const sessionIdOf = (token: string): string => sha256Hex(token)

/** Session lifetime and cookie Max-Age in seconds: 30 days. Use never extends it; a new sign-in is a new session. */
export const sessionLifetimeSeconds = 2_592_000

const envelope = /^([A-Za-z0-9_-]{43})\.([1-9][0-9]{0,11})\.([A-Za-z0-9_-]{43})$/

/** The name of one of our cookies, and the attributes that all of them share. */
export const formOf = (
  name: string,
  { secure, hostPrefix }: Pick<SessionCookieOptions, 'secure' | 'hostPrefix'>,
): { name: string; attributes: string } => ({
  name: `${hostPrefix ? '__Host-' : ''}${name}`,
  attributes: `Path=/; HttpOnly; ${secure ? 'Secure; ' : ''}SameSite=Strict`,
})

/** The session cookie `<token>.<expires>.<mac>`. */
export function createSessionCookie(mac: Mac, options: SessionCookieOptions): SessionCookie {
  const { now = Date.now } = options
  const { name, attributes } = formOf('svc_session', options)
  const signed = (token: string, expires: string): string => `svc_session:${token}.${expires}`
  const check = remembered((value): Good | undefined => {
    const [, token, expires, given] = envelope.exec(value) ?? []
    if (token === undefined || expires === undefined || given === undefined) return undefined
    if (mac.verify(signed(token, expires), given) < 0) return undefined
    return { state: 'good', sessionId: sessionIdOf(token), expires: Number(expires) }
  })
  return {
    name,
    issue(token, expiresAt) {
      const expires = String(Math.floor(Date.parse(expiresAt) / 1000))
      const value = `${token}.${expires}.${mac.sign(signed(token, expires))}`
      return `${name}=${value}; Max-Age=${sessionLifetimeSeconds}; ${attributes}`
    },
    clear: () => `${name}=; Max-Age=0; ${attributes}`,
    read(cookieHeader) {
      const value = firstCookie(cookieHeader, name)
      if (value === undefined) return { state: 'none' }
      const found = check(value)
      return found === undefined || found.expires * 1000 <= now() ? { state: 'bad' } : found
    },
  }
}

const rememberedMax = 1000

/**
 * Remembers the latest valid cookies: their meaning never changes, and checking the signature takes a tenth of the time
 * of a request. Whether the session still exists is looked up in the database every time.
 */
function remembered(check: (value: string) => Good | undefined): typeof check {
  let latest = new Map<string, Good>()
  let before = latest
  return (value) => {
    const known = latest.get(value)
    if (known) return known
    const found = before.get(value) ?? check(value)
    if (found === undefined) return undefined
    if (latest.size === rememberedMax) {
      before = latest
      latest = new Map()
    }
    // A copy: a slice would hold on to the whole Cookie header.
    latest.set(Buffer.from(value).toString(), found)
    return found
  }
}

/**
 * Skips spaces and tabs only and matches the name exactly: browsers let a sibling host set a cookie whose
 * name begins with other white space, and trimming that would make it pass for the `__Host-` cookie.
 */
export function firstCookie(header: string | undefined, name: string): string | undefined {
  if (header === undefined) return undefined
  for (const pair of header.split(';')) {
    let start = 0
    while (pair[start] === ' ' || pair[start] === '\t') start++
    if (pair.startsWith(`${name}=`, start)) return pair.slice(start + name.length + 1)
  }
  return undefined
}
