import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { tooBig } from '../wire/types.ts'

/**
 * The parts of the WebAuthn library that passkeys need. It is loaded on first use, because few processes ever see a
 * passkey.
 */

/** Who asks for the proof: browsers and authenticators bind a key to the id, and a proof to the origin. */
export type RelyingParty = { id: string; origins: readonly string[] }

/** ES256, EdDSA and RS256: what browsers and authenticators have in common. */
const algorithms = [-7, -8, -257]
const timeout = 300_000
const responseMax = 65_536
/**
 * Authenticators send a fraction of it. The library decodes CBOR in quadratic time: the largest response would hold up
 * everybody for tenths of a second.
 */
const cborMax = 8_192

const load = () => import('@simplewebauthn/server')
const helpers = () => import('@simplewebauthn/server/helpers')

export const newChallenge = (): string => randomBytes(32).toString('base64url')
const bytesOf = (challenge: string): Uint8Array<ArrayBuffer> =>
  new Uint8Array(Buffer.from(challenge, 'base64url'))

const Base64Url = z.string().regex(/^[A-Za-z0-9_-]*$/)
/** Id of a passkey, made by its authenticator. */
export const PasskeyId = z.string().regex(/^[A-Za-z0-9_-]{1,1364}$/)

/** What a browser makes of a credential by `toJSON`; keys that are not read are dropped. */
const responseOf = <S extends z.ZodRawShape>(response: S) =>
  bounded(
    z.object({
      id: PasskeyId,
      rawId: PasskeyId,
      type: z.literal('public-key'),
      response: z.object({ clientDataJSON: Base64Url, ...response }),
    }),
  )

/** The size comes first: anybody may send tens of thousands of keys, and copying them costs more than parsing. */
const bounded = <S extends z.ZodType>(schema: S) =>
  z.preprocess((sent: z.input<S>, context) => {
    const text = JSON.stringify(sent) ?? ''
    if (Buffer.byteLength(text) > responseMax) context.issues.push(tooBig(responseMax, text, 'bytes'))
    return sent
  }, schema)

export const RegistrationResponse = responseOf({
  attestationObject: Base64Url,
  transports: z
    .array(z.string().regex(/^[a-z-]{1,32}$/))
    .max(10)
    .optional(),
})
export const AssertionResponse = responseOf({
  authenticatorData: Base64Url,
  signature: Base64Url,
  userHandle: Base64Url.nullish(),
})
export type RegistrationResponse = z.output<typeof RegistrationResponse>
export type AssertionResponse = z.output<typeof AssertionResponse>

/** A stored passkey, as the options of a browser name it. */
export type KnownPasskey = { id: string; transports: string[] | null }
const described = ({ id, transports }: KnownPasskey) => ({ id, ...(transports && { transports }) })

/** Options for `navigator.credentials.create`. */
export async function creationOptions(
  party: RelyingParty & { name: string },
  account: { id: string; username: string },
  challenge: string,
  known: readonly KnownPasskey[],
) {
  const { generateRegistrationOptions } = await load()
  return await generateRegistrationOptions({
    rpName: party.name,
    rpID: party.id,
    userID: new Uint8Array(Buffer.from(account.id)),
    userName: account.username,
    userDisplayName: account.username,
    challenge: bytesOf(challenge),
    timeout,
    attestationType: 'none',
    excludeCredentials: known.map(described),
    authenticatorSelection: { residentKey: 'required', userVerification: 'preferred' },
    supportedAlgorithmIDs: algorithms,
  })
}

/** Options for `navigator.credentials.get`: of the credentials given, or of any that the browser offers. */
export async function requestOptions(
  party: RelyingParty,
  challenge: string,
  allowed?: readonly KnownPasskey[],
) {
  const { generateAuthenticationOptions } = await load()
  return await generateAuthenticationOptions({
    rpID: party.id,
    challenge: bytesOf(challenge),
    timeout,
    allowCredentials: (allowed ?? []).map(described),
    userVerification: allowed ? 'preferred' : 'required',
  })
}

/** The key that a response registers; undefined if anything in it is wrong. */
export async function verifyRegistration(
  party: RelyingParty,
  challenge: string,
  response: RegistrationResponse,
) {
  const { verifyRegistrationResponse } = await load()
  return await orRefused(async () => {
    if (isLong(response.response.attestationObject)) return undefined
    if ((await isFramed(response)) || !(await isPlain(response))) return undefined
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      ...expected(party, challenge),
      response: { ...response, clientExtensionResults: {} },
      requireUserVerification: false,
      supportedAlgorithmIDs: algorithms,
    })
    if (!verified || registrationInfo.credential.id !== response.id) return undefined
    const { credential, aaguid, userVerified, credentialDeviceType, credentialBackedUp } = registrationInfo
    return {
      id: credential.id,
      public_key: Buffer.from(credential.publicKey),
      counter: credential.counter,
      transports: response.response.transports ?? null,
      aaguid,
      is_verified: userVerified,
      device: deviceOf(credentialDeviceType),
      backed_up: credentialBackedUp,
    }
  })
}

/** What a response proves of a key; undefined if it proves nothing. The caller compares the counter. */
export async function verifyAssertion(
  party: RelyingParty,
  challenge: string,
  response: AssertionResponse,
  { id, public_key }: { id: string; public_key: Buffer },
) {
  const { verifyAuthenticationResponse } = await load()
  return await orRefused(async () => {
    if (isLong(response.response.authenticatorData) || (await isFramed(response))) return undefined
    const { userHandle, ...rest } = response.response
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      ...expected(party, challenge),
      response: {
        ...response,
        response: { ...rest, ...(userHandle && { userHandle }) },
        clientExtensionResults: {},
      },
      // With 0 the library compares no counters, which it would do before it checks the signature.
      credential: { id, publicKey: new Uint8Array(public_key), counter: 0 },
      requireUserVerification: false,
    })
    if (!verified) return undefined
    const { newCounter, userVerified, credentialDeviceType, credentialBackedUp } = authenticationInfo
    return {
      counter: newCounter,
      is_verified: userVerified,
      device: deviceOf(credentialDeviceType),
      backed_up: credentialBackedUp,
    }
  })
}

const expected = ({ id, origins }: RelyingParty, challenge: string) => ({
  expectedChallenge: challenge,
  expectedOrigin: [...origins],
  expectedRPID: id,
})

const deviceOf = (type: string): 'single' | 'synced' => (type === 'multiDevice' ? 'synced' : 'single')

const isLong = (cbor: string): boolean => Buffer.byteLength(cbor, 'base64url') > cborMax

/** An error of a parser means that the response is malformed. */
const orRefused = <T>(verify: () => Promise<T | undefined>): Promise<T | undefined> =>
  verify().catch(() => undefined)

type Proven = { response: { clientDataJSON: string } }

/** Whether it was made inside a frame of another site, which the library does not always refuse. */
async function isFramed({ response }: Proven): Promise<boolean> {
  const { decodeClientDataJSON } = await helpers()
  const { crossOrigin = false, topOrigin } = decodeClientDataJSON(response.clientDataJSON)
  return crossOrigin !== false || topOrigin !== undefined
}

/**
 * Whether the attestation is complete and without a certificate, as is every response to our options, which ask for
 * none. The library accepts a truncated one, and would fetch addresses that a certificate names.
 */
async function isPlain({ response }: RegistrationResponse): Promise<boolean> {
  const { decodeAttestationObject, isoCBOR } = await helpers()
  const bytes = Buffer.from(response.attestationObject, 'base64url')
  const decoded = decodeAttestationObject(new Uint8Array(bytes))
  const isWhole = bytes.equals(isoCBOR.encode(decoded as unknown as Parameters<typeof isoCBOR.encode>[0]))
  const isSelf = decoded.get('fmt') === 'packed' && decoded.get('attStmt').get('x5c') === undefined
  return isWhole && (decoded.get('fmt') === 'none' || isSelf)
}
