import { randomBytes } from 'node:crypto'
import { ActorName, Email, fold, Username } from '../accounts/formats.ts'
import type { OidcProvider } from '../config/oidc.ts'
import { refusal } from '../errors.ts'
import { badText } from '../wire/issues.ts'
import type { Claims } from './relying-party.ts'

/** Whom a provider has recognised. */
export type Identity = {
  issuer: string
  /** Together with the issuer, identifies the person, whatever happens to names and addresses. */
  subject: string
  /** Null unless the provider has verified it. */
  email: string | null
  /** What a new account would be called; it may be taken. */
  username: string
  name: string | null
  /** The ID token proves a second factor. */
  strong: boolean
}

/** Refuses with `oidc_failed` or `oidc_not_allowed`. */
export function identityOf(
  provider: OidcProvider,
  { idToken, all }: Record<'idToken' | 'all', Claims>,
): Identity {
  if (!/^[ -~]{1,255}$/.test(idToken.sub)) throw refusal('oidc_failed')
  const email = verifiedEmail(provider, all)
  if (!isAllowed(provider, all, email)) throw refusal('oidc_not_allowed')
  const named = textOf(all[provider.claims.username])
  return {
    issuer: provider.issuer,
    subject: idToken.sub,
    email,
    username: usernameFrom(named ?? email ?? ''),
    name: nameFrom(textOf(all[provider.claims.name])),
    strong: isStrong(provider, idToken),
  }
}

/** Claims may be anything that JSON can hold; the database accepts no U+0000 and no half of a surrogate pair. */
const textOf = (claim: unknown): string | null =>
  typeof claim === 'string' && claim !== '' && !badText(claim) ? claim : null

function verifiedEmail({ claims, trust_email }: OidcProvider, all: Claims): string | null {
  const verified = all[claims.email_verified]
  // Some providers send the claim as text.
  const isVerified = verified === undefined ? trust_email : verified === true || verified === 'true'
  const email = Email.safeParse(textOf(all[claims.email]))
  return isVerified && email.success ? email.data : null
}

function isAllowed({ required_claims, allowed_domains }: OidcProvider, all: Claims, email: string | null) {
  for (const [claim, value] of Object.entries(required_claims)) if (all[claim] !== value) return false
  return allowed_domains === undefined || (email !== null && isIn(allowed_domains, email))
}

export const isIn = (domains: readonly string[], email: string): boolean =>
  domains.some((domain) => fold(domain) === fold(email.slice(email.lastIndexOf('@') + 1)))

function isStrong({ second_factor }: OidcProvider, { acr, amr }: Claims): boolean {
  if (second_factor === undefined) return false
  if ('acr' in second_factor) return typeof acr === 'string' && second_factor.acr.includes(acr)
  return Array.isArray(amr) && second_factor.amr.some((method) => amr.includes(method))
}

function nameFrom(claim: string | null): string | null {
  const name = ActorName.safeParse(
    Array.from(claim ?? '')
      .slice(0, 100)
      .join(''),
  )
  return name.success && name.data !== '' ? name.data : null
}

const usernameMax = 39

/**
 * Brings a claim to the format of usernames: drops accents and the domain of an address, and turns other characters
 * into `-`.
 */
export function usernameFrom(claim: string): string {
  const text = (claim.split('@')[0] as string)
    .slice(0, 255)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^[^A-Za-z]+/, '')
  const name = cut(text, usernameMax)
  const named = Username.safeParse(name)
  return named.success ? named.data : Username.parse(cut(`user-${name}`, usernameMax))
}

/** The names to try for a new account, in this order; the last one ends in random digits. */
export const usernameCandidates = (username: string): string[] => [
  username,
  ...Array.from({ length: 19 }, (_, at) => suffixed(username, `${at + 2}`)),
  suffixed(username, randomBytes(4).toString('hex')),
]

const suffixed = (username: string, suffix: string): string =>
  `${cut(username, usernameMax - 1 - suffix.length)}-${suffix}`

function cut(name: string, length: number): string {
  let end = Math.min(name.length, length)
  while (end > 0 && '_-'.includes(name[end - 1] as string)) end -= 1
  return name.slice(0, end)
}
