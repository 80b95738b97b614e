import { createRequire } from 'node:module'
import { isInstalled } from './packages.ts'

/** The rules of the settings about passkeys. Browsers bind a passkey to a domain, and use it on its pages only. */

/** At least two labels, because nobody owns a top-level domain; the last one is not a number, as in an IP address. */
export const rpIdForm =
  /^(localhost|(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+(?!\d+$)[a-z0-9-]{2,63})$/

const hostOf = (origin: string): string => URL.parse(origin)?.hostname ?? ''

/** The domain of an origin; null if its host is not a domain. */
export function domainOf(origin: string | null): string | null {
  const host = origin === null ? '' : hostOf(origin)
  return rpIdForm.test(host) ? host : null
}

/** The rule that an origin breaks; undefined for a good one. */
export function checkOrigin(text: string): string | undefined {
  const url = URL.parse(text)
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && url.hostname === 'localhost')
  return isSafe && url.origin === text ? undefined : 'must be an origin with https, or http://localhost'
}

type Given = { public_url: string | null; rp_id: string | null; passkey_origins: readonly string[] }

/** Why passkeys cannot be on; each string is one problem. */
export function passkeyFaults(
  { public_url, rp_id, passkey_origins }: Given,
  label: (key: keyof Given) => string,
): string[] {
  const isWithin = (origin: string): boolean =>
    rp_id !== null && (hostOf(origin) === rp_id || hostOf(origin).endsWith(`.${rp_id}`))
  const faults: string[] = []
  if (public_url === null) faults.push(`${label('public_url')} is required for passkeys`)
  else if (rp_id === null)
    faults.push(`${label('public_url')} must have a domain name or localhost as its host for passkeys`)
  else if (!isWithin(public_url))
    faults.push(`${label('rp_id')} must be the host of ${label('public_url')} or a domain above it`)
  else if (
    passkey_origins.length === 0 ||
    !passkey_origins.every((one) => isWithin(one) && !checkOrigin(one))
  )
    faults.push(
      `${label('passkey_origins')} must be origins of ${label('rp_id')} or of domains below it, with https or http://localhost`,
    )
  else if ([public_url, ...passkey_origins].some((one) => hostOf(one) !== rp_id) && isPublicSuffix(rp_id))
    faults.push(
      `${label('rp_id')} must be a domain of your own: anyone may register names below ${rp_id}, so browsers keep no passkeys for it`,
    )
  if (!isInstalled('@simplewebauthn/server'))
    faults.push(
      'passkeys need the package @simplewebauthn/server: run `npm install @simplewebauthn/server@14`',
    )
  return faults
}

/** Whether the domain is in the Public Suffix List (publicsuffix.org); false without the optional package with the list. */
function isPublicSuffix(domain: string): boolean {
  if (!isInstalled('tldts')) return false
  const list: typeof import('tldts') = createRequire(import.meta.url)('tldts')
  const { publicSuffix, isIcann, isPrivate } = list.parse(domain, { allowPrivateDomains: true })
  return publicSuffix === domain && Boolean(isIcann || isPrivate)
}
