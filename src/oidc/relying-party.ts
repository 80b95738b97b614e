import { AsyncLocalStorage } from 'node:async_hooks'
import type { Configuration, CustomFetch } from 'openid-client'
import type { OidcProvider } from '../config/oidc.ts'
import type { Clock } from '../db/clock.ts'
import { refusal, type ServiceError } from '../errors.ts'
import type { Log } from '../log/log.ts'

/** The secrets of one flow, which bind the answer of a provider to the browser that asked. */
export type Checks = { state: string; nonce: string; verifier: string }

export type Claims = Readonly<Record<string, unknown>> & { readonly sub: string }

/**
 * This service as a client of providers. Refuses with `provider_unavailable` if a provider cannot be reached, and with
 * `oidc_failed` if its answer proves nothing; the log has the cause.
 */
export type RelyingParty = {
  /** Where the browser goes to sign in. */
  authorizationUrl(provider: OidcProvider, checks: Checks, more?: Record<string, string>): Promise<string>
  /** Exchanges the code in the query for an ID token and returns its claims, and those of the userinfo endpoint. */
  claims(
    provider: OidcProvider,
    query: string,
    checks: Checks & { maxAge: number | undefined },
  ): Promise<{ idToken: Claims; all: Claims }>
}

type Library = typeof import('openid-client')

const metadataMs = 3_600_000
/** A token signed with an unknown key makes the service read the provider's keys again, at most this often. */
const renewMs = 10_000
const timeoutSeconds = 5
const toleranceSeconds = 30
/**
 * The library keeps the clock skew with the metadata, so both are read again after the clock of this machine was
 * changed.
 */
const skewChangeMs = 2_000
const bodyMax = 1_048_576

export function createRelyingParty(
  redirectUrl: string,
  log: Log,
  clock: Pick<Clock, 'now' | 'skewMs'>,
): RelyingParty {
  const known = new Map<string, { configuration: Promise<Configuration>; at: number; skewMs: number }>()

  const configurationOf = (library: Library, provider: OidcProvider): Promise<Configuration> => {
    const found = known.get(provider.id)
    const { skewMs } = clock
    const isRight = found && Math.abs(found.skewMs - skewMs) < skewChangeMs
    if (isRight && performance.now() - found.at < metadataMs) return found.configuration
    const made = { configuration: discover(library, provider, skewMs), at: performance.now(), skewMs }
    known.set(provider.id, made)
    // The next sign-in tries again.
    made.configuration.catch(() => known.get(provider.id) === made && known.delete(provider.id))
    return made.configuration
  }

  const renewedAt = new Map<string, number>()
  /**
   * A newer configuration than the one that does not know a key, if there is one: the library caches keys for a minute.
   */
  const renewed = async (library: Library, provider: OidcProvider, old: Configuration) => {
    const { id } = provider
    if ((await configurationOf(library, provider)) === old) {
      if (performance.now() - (renewedAt.get(id) ?? Number.NEGATIVE_INFINITY) < renewMs) return undefined
      renewedAt.set(id, performance.now())
      known.delete(id)
    }
    return await configurationOf(library, provider)
  }

  const ask = async <T>(
    provider: OidcProvider,
    work: (library: Library, configuration: Configuration) => Promise<T>,
  ): Promise<T> => {
    try {
      const library = await import('openid-client')
      return await work(library, await configurationOf(library, provider))
    } catch (error) {
      log.warn(
        { event: 'provider_refused', provider: provider.id, cause: causeOf(error) },
        'a provider did not prove an identity',
      )
      throw refusalOf(error)
    }
  }

  const redirectOf = ({ id }: OidcProvider): string => `${redirectUrl}/${id}`

  return {
    authorizationUrl: (provider, { state, nonce, verifier }, more) =>
      ask(provider, async (library, configuration) => {
        const url = library.buildAuthorizationUrl(configuration, {
          redirect_uri: redirectOf(provider),
          scope: provider.scopes,
          state,
          nonce,
          code_challenge: await library.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
          ...more,
        })
        return url.href
      }),
    claims: (provider, query, { state, nonce, verifier, maxAge }) =>
      ask(provider, async (library, configuration) => {
        const url = new URL(redirectOf(provider))
        url.search = query
        const grant = (by: Configuration) =>
          library.authorizationCodeGrant(by, url, {
            expectedState: state,
            expectedNonce: nonce,
            pkceCodeVerifier: verifier,
            idTokenExpected: true,
            ...(maxAge !== undefined && { maxAge }),
          })
        // The code works only once, so the same answer is checked again.
        const tokens = await exchange.run({}, () =>
          grant(configuration).catch(async (error) => {
            const fresh = isUnknownKey(error) && (await renewed(library, provider, configuration))
            if (!fresh) throw error
            return await grant(fresh)
          }),
        )
        const idToken = tokens.claims() as Claims
        // The library checks it only if the token has several audiences.
        if (idToken.azp !== undefined && idToken.azp !== provider.client_id)
          throw new Error('the ID token was issued to another client')
        // The library has no upper bound for these: a proof of tomorrow would count as recent for as long.
        const latest = clock.now() / 1000 + toleranceSeconds
        for (const name of maxAge === undefined ? ['iat'] : ['iat', 'auth_time'])
          if (!(Number(idToken[name]) <= latest)) throw new Error(`${name} of the ID token is in the future`)
        if (!provider.userinfo) return { idToken, all: idToken }
        const more = await library.fetchUserInfo(configuration, tokens.access_token, idToken.sub)
        return { idToken, all: claimsOf(provider, idToken, more) }
      }),
  }
}

/**
 * The claims of both, those of the ID token first. Whether an e-mail is verified is taken from the source that names
 * the e-mail; the other source counts only if it names the same e-mail or none.
 */
function claimsOf({ claims }: OidcProvider, idToken: Claims, userinfo: Claims): Claims {
  const { email, email_verified } = claims
  const [from, other] = idToken[email] === undefined ? [userinfo, idToken] : [idToken, userinfo]
  const isOfOther = other[email] === undefined || other[email] === from[email]
  const verified = from[email_verified] ?? (isOfOther ? other[email_verified] : undefined)
  return { ...userinfo, ...idToken, [email_verified]: verified }
}

async function discover(library: Library, provider: OidcProvider, skewMs: number): Promise<Configuration> {
  const { issuer, client_id } = provider
  const configuration = await library.discovery(
    new URL(issuer),
    client_id,
    { [library.clockTolerance]: toleranceSeconds, [library.clockSkew]: Math.round(-skewMs / 1000) },
    clientAuth(library, provider),
    {
      timeout: timeoutSeconds,
      [library.customFetch]: boundedFetch,
      // Without these checks the library relies on TLS and does not verify the signature of ID tokens.
      execute: [
        library.enableNonRepudiationChecks,
        ...(issuer.startsWith('http:') ? [library.allowInsecureRequests] : []),
      ],
    },
  )
  // The library lets some providers answer for issuers other than the one asked.
  if (configuration.serverMetadata().issuer !== issuer)
    throw new Error('the metadata has another issuer than the setting')
  return configuration
}

function clientAuth(library: Library, { client_auth, client_secret }: OidcProvider) {
  if (client_auth === 'none') return library.None()
  return client_auth === 'client_secret_post'
    ? library.ClientSecretPost(client_secret)
    : library.ClientSecretBasic(client_secret)
}

/** A TypeError, because the library passes it on unchanged. */
class Unreachable extends TypeError {}

const isUnknownKey = (error: unknown): boolean =>
  (error as { code?: unknown }).code === 'OAUTH_KEY_SELECTION_FAILED'

/** Keeps the answer to a code while its tokens are checked. */
const exchange = new AsyncLocalStorage<{ answer?: Response }>()

const boundedFetch: CustomFetch = async (url, options) => {
  const exchanged = options.method === 'POST' ? exchange.getStore() : undefined
  if (exchanged?.answer) return exchanged.answer
  const response = await read(url, options)
  if (exchanged) exchanged.answer = response.clone()
  return response
}

/** Reads a whole response of bounded size within the time that the signal leaves. */
const read: CustomFetch = async (url, options) => {
  try {
    const response = await fetch(url, options as RequestInit)
    const { status, headers } = response
    if (status >= 500 || status === 429) throw new Error(`status ${status}`)
    const chunks: Uint8Array[] = []
    let size = 0
    for await (const chunk of response.body ?? []) {
      size += chunk.length
      if (size > bodyMax) throw new Error(`more than ${bodyMax} bytes`)
      chunks.push(chunk)
    }
    return new Response(size === 0 ? null : Buffer.concat(chunks), { status, headers })
  } catch (error) {
    throw new Unreachable(networkCause(error))
  }
}

function networkCause(error: unknown): string {
  const { message, name, cause } = error as Error
  return name === 'TimeoutError' ? 'timeout' : ((cause as { code?: string } | undefined)?.code ?? message)
}

const refusalOf = (error: unknown): ServiceError =>
  error instanceof Unreachable
    ? refusal('provider_unavailable', { retry_after: timeoutSeconds })
    : refusal('oidc_failed')

/** Names the rule that was broken. The deeper causes of an error quote tokens and are left out. */
function causeOf(error: unknown): string {
  const { message, cause, error: code } = error as Error & { error?: unknown }
  const rule = cause instanceof Error && 'code' in cause ? cause.message : undefined
  const named = typeof code === 'string' && /^[a-z_]{1,40}$/.test(code) ? code : undefined
  return [message, rule, named].filter((part) => part !== undefined).join(': ')
}
