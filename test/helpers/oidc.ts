import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import type { OidcProviderOptions } from '../../src/config/oidc.ts'
import type { TestService } from '../../src/testing/index.ts'
import { type Reply, type SendOptions, send } from './account-routes.ts'

type Person = JWTPayload & { sub: string }
type Request = { client_id: string; redirect_uri: string; nonce: string; challenge: string; person: Person }

/** What a hostile or broken provider does differently. */
export type Tampering = {
  claims?: JWTPayload
  header?: { kid?: string; alg?: string }
  /** Signs with a key that the provider does not publish. */
  foreignKey?: boolean
  /** Sends the token without a signature. */
  unsigned?: boolean
  /** Changes the answer of a path, such as the metadata. */
  answer?: { [path: string]: { status?: number; body?: unknown } }
  /** Resolves before a path is answered. */
  before?: (path: string) => Promise<unknown> | undefined
}

export type TestProvider = {
  issuer: string
  /** The provider's entry in the options of a service. */
  entry(more?: Partial<OidcProviderOptions>): OidcProviderOptions
  tampering: Tampering
  /** The paths requested so far. */
  asked: string[]
  /** Signs with a new key from now on, and publishes only that one. */
  rotate(): Promise<void>
  /** The query that the browser brings back from this URL once the person has signed in there. */
  authorize(url: string, person: Person): string
  close(): Promise<void>
}

export const clientSecret = 'client-secret-of-the-test'
const client_id = 'cellkeep-test'

/** For services whose providers are never asked. */
export const providerIsDown = {
  oidc: [{ id: 'corp', issuer: 'http://127.0.0.1:9', client_id }],
}

/** An OpenID provider in this process. It checks what an honest one checks, unless a test tampers with it. */
export async function testProvider(id = 'corp'): Promise<TestProvider> {
  let own = await generateKeyPair('ES256')
  const foreign = await generateKeyPair('ES256')
  let kid = randomUUID()
  const codes = new Map<string, Request>()
  const people = new Map<string, Person>()
  let issuer = ''

  const idToken = async ({ nonce, person }: Request): Promise<string> => {
    const { claims, header, foreignKey, unsigned } = provider.tampering
    const now = Math.floor(Date.now() / 1000)
    const payload = { iss: issuer, aud: client_id, iat: now, exp: now + 60, nonce, ...person, ...claims }
    if (unsigned) {
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
      return `${part({ alg: 'none', kid, ...header })}.${part(payload)}.`
    }
    return await new SignJWT(payload)
      .setProtectedHeader({ alg: 'ES256', kid, ...header })
      .sign(foreignKey ? foreign.privateKey : own.privateKey)
  }

  const redeem = async (
    { headers }: IncomingMessage,
    body: string,
  ): Promise<{ status: number; body: unknown }> => {
    const form = new URLSearchParams(body)
    const found = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    const verified = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const basic = Buffer.from(headers.authorization?.slice('Basic '.length) ?? '', 'base64').toString()
    if (decodeURIComponent(basic) !== `${client_id}:${clientSecret}`)
      return { status: 401, body: { error: 'invalid_client' } }
    if (!found || found.challenge !== verified || found.redirect_uri !== form.get('redirect_uri'))
      return { status: 400, body: { error: 'invalid_grant' } }
    const access_token = randomUUID()
    people.set(`Bearer ${access_token}`, found.person)
    return { status: 200, body: { access_token, token_type: 'Bearer', id_token: await idToken(found) } }
  }

  const answers: Record<
    string,
    (request: IncomingMessage, body: string) => Promise<{ status?: number; body: unknown }>
  > = {
    '/.well-known/openid-configuration': async () => ({
      body: {
        issuer,
        authorization_endpoint: `${issuer}/auth`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
        userinfo_endpoint: `${issuer}/userinfo`,
        id_token_signing_alg_values_supported: ['ES256', 'none', 'HS256'],
        authorization_response_iss_parameter_supported: true,
      },
    }),
    '/jwks': async () => ({ body: { keys: [{ ...(await exportJWK(own.publicKey)), kid, alg: 'ES256' }] } }),
    '/token': redeem,
    '/userinfo': async ({ headers }) => ({ body: people.get(headers.authorization ?? '') }),
  }

  const server = createServer(async (request, response) => {
    const path = request.url ?? ''
    const sent = await text(request)
    provider.asked.push(path)
    await provider.tampering.before?.(path)
    const honest = (await answers[path]?.(request, sent)) ?? { status: 404, body: {} }
    const { status = 200, body } = { ...honest, ...provider.tampering.answer?.[path] }
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const provider: TestProvider = {
    issuer,
    entry: (more) => ({ id, issuer, client_id, client_secret: clientSecret, ...more }),
    tampering: {},
    asked: [],
    async rotate() {
      own = await generateKeyPair('ES256')
      kid = randomUUID()
    },
    authorize(url, person) {
      const { origin, pathname, searchParams } = new URL(url)
      const asked = (name: string) => searchParams.get(name) ?? ''
      if (origin + pathname !== `${issuer}/auth` || asked('client_id') !== client_id)
        throw new Error('another provider or client was asked')
      if (asked('code_challenge_method') !== 'S256' || asked('response_type') !== 'code')
        throw new Error('no code flow with PKCE was asked for')
      const code = randomUUID()
      const [nonce, challenge] = [asked('nonce'), asked('code_challenge')]
      codes.set(code, { client_id, redirect_uri: asked('redirect_uri'), nonce, challenge, person })
      return new URLSearchParams({ code, state: asked('state'), iss: issuer }).toString()
    },
    close: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
  return provider
}

/** A browser on its way through a sign-in: the URL it was sent to, and its flow cookie. */
export type Started = { reply: Reply; url: string; flow: string | undefined }

export async function start(
  test: Pick<TestService, 'url'>,
  body: { provider?: string; intent?: string; invite_token?: string } = {},
  options: SendOptions = {},
): Promise<Started> {
  const reply = await send(test, 'POST /oidc_start', {
    body: { provider: 'corp', intent: 'sign_in', ...body },
    ...options,
  })
  return { reply, url: String(reply.json?.url), flow: reply.cookie }
}

/** Posts the query of the provider's redirect, with the cookies of the browser. */
export const finish = (
  test: Pick<TestService, 'url'>,
  {
    flow,
    query,
    cookie,
    provider = 'corp',
  }: { flow: string | undefined; query: string; cookie?: string; provider?: string },
  options: SendOptions = {},
): Promise<Reply> =>
  send(test, 'POST /oidc_finish', {
    body: { provider, query },
    cookie: [flow, cookie].filter(Boolean).join('; '),
    ...options,
  })

/** The whole sign-in of a person, in a browser that has this session. */
export async function signIn(
  test: Pick<TestService, 'url'>,
  provider: TestProvider,
  person: Person,
  {
    cookie,
    ip,
    ...body
  }: { intent?: string; invite_token?: string; provider?: string; cookie?: string; ip?: string } = {},
): Promise<Reply> {
  const from = { ...(cookie && { cookie }), ...(ip && { ip }) }
  const { url, flow, reply } = await start(test, body, from)
  if (reply.status !== 200) return reply
  const query = provider.authorize(url, person)
  const id = body.provider
  return await finish(
    test,
    { flow, query, ...(cookie && { cookie }), ...(id && { provider: id }) },
    ip ? { ip } : {},
  )
}
