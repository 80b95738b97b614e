import type { CookieReading, SessionCookie } from './cookie.ts'

/** The credentials that a request carries: well-formed, not yet looked up. */
export type Carriers = {
  cookie: CookieReading
  bearer?: string
  daemon?: string
}

/** The scheme in any case; the token exactly as issued. */
const bearerForm = /^[Bb][Ee][Aa][Rr][Ee][Rr] (secret_svc_token_[A-Za-z0-9_-]{43})$/
const daemonForm = /^[A-Za-z0-9_-]{43}$/

/**
 * Reads the credentials of a request. If it comes from a page in a browser (it has an `Origin` or `Referer`,
 * even an empty one), bearer and daemon token are silently ignored; `discarded` lists them for the debug header.
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
