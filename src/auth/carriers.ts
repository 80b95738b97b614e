import type { CookieReading, SessionCookie } from './cookie.ts'

/** The credentials that came with a request (contract 1, section 7.1): well-formed, not yet looked up. */
export type Carriers = {
  cookie: CookieReading
  bearer?: string
  daemon?: string
}

/** The scheme in any case; the token exactly as it was given out. */
const bearerForm = /^[Bb][Ee][Aa][Rr][Ee][Rr] (secret_svc_token_[A-Za-z0-9_-]{43})$/
const daemonForm = /^[A-Za-z0-9_-]{43}$/

/**
 * Reads the carriers. A request from a browser's page (any `Origin` or `Referer`, even an empty one) has no
 * bearer and no daemon token: the discard is silent, `discarded` names it for the debug header.
 */
export function readCarriers(
  header: (name: string) => string | undefined,
  sessionCookie: SessionCookie,
): { carriers: Carriers; discarded: string[] } {
  const cookie = sessionCookie.read(header('cookie'))
  const authorization = header('authorization')
  const daemonHeader = header('x-daemon-token')
  if (authorization === undefined && daemonHeader === undefined)
    return { carriers: { cookie }, discarded: [] }

  if (header('origin') !== undefined || header('referer') !== undefined) {
    const discarded: string[] = []
    if (authorization !== undefined && /^bearer /i.test(authorization))
      discarded.push('bearer_discarded_browser_context')
    if (daemonHeader !== undefined) discarded.push('daemon_token_discarded_browser_context')
    return { carriers: { cookie }, discarded }
  }
  const bearer = bearerForm.exec(authorization ?? '')?.[1]
  const daemon = daemonForm.exec(daemonHeader ?? '')?.[0]
  return { carriers: { cookie, ...(bearer && { bearer }), ...(daemon && { daemon }) }, discarded: [] }
}
