import { CellkeepError } from '../../src/client/client.ts'

/** Passkeys, in the JSON form of the server; Safari before 18.4 cannot convert it itself. */

const bytesOf = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (sign) => sign.charCodeAt(0))

export const base64url = (bytes: ArrayBuffer): string =>
  btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replace(/\+/g, '-')
    .replace(/\//g, '_')
    .replace(/=+$/, '')

type Json = Record<string, unknown>
/** As the server sends them. */
export type PasskeyOptions = Json & { challenge: string }
type Listed = { id: string }[] | undefined
const listed = (of: unknown) => (of as Listed)?.map((one) => ({ ...one, id: bytesOf(one.id) }))

/** The response to the options of the server; undefined: the person closed the browser's dialog. */
export async function createPasskey(options: PasskeyOptions) {
  const user = options.user as { id: string }
  const publicKey = {
    ...options,
    challenge: bytesOf(options.challenge),
    user: { ...user, id: bytesOf(user.id) },
    excludeCredentials: listed(options.excludeCredentials),
  } as unknown as PublicKeyCredentialCreationOptions
  const made = await unlessClosed(() => navigator.credentials.create({ publicKey }))
  if (!made) return undefined
  const { attestationObject, clientDataJSON, getTransports } =
    made.response as AuthenticatorAttestationResponse
  return jsonOf(made, {
    clientDataJSON: base64url(clientDataJSON),
    attestationObject: base64url(attestationObject),
    transports: getTransports?.call(made.response) ?? [],
  })
}

/** The same as `createPasskey`, for signing in and for proving one's identity. */
export async function askPasskey(options: PasskeyOptions) {
  const publicKey = {
    ...options,
    challenge: bytesOf(options.challenge),
    allowCredentials: listed(options.allowCredentials),
  } as unknown as PublicKeyCredentialRequestOptions
  const found = await unlessClosed(() => navigator.credentials.get({ publicKey }))
  if (!found) return undefined
  const { authenticatorData, clientDataJSON, signature, userHandle } =
    found.response as AuthenticatorAssertionResponse
  return jsonOf(found, {
    clientDataJSON: base64url(clientDataJSON),
    authenticatorData: base64url(authenticatorData),
    signature: base64url(signature),
    ...(userHandle && { userHandle: base64url(userHandle) }),
  })
}

const jsonOf = <R>(of: PublicKeyCredential, response: R) => ({
  id: of.id,
  rawId: of.id,
  type: 'public-key' as const,
  authenticatorAttachment: of.authenticatorAttachment ?? undefined,
  clientExtensionResults: {},
  response,
})

const elsewhere = () => new CellkeepError('passkey', 'passkey_elsewhere', 0, {})

/**
 * The browser has already told the person the cause, except if the page is not of the domain of the passkeys, or came
 * over plain http, where browsers have none.
 */
async function unlessClosed(ask: () => Promise<Credential | null>): Promise<PublicKeyCredential | undefined> {
  if (!('credentials' in navigator)) throw elsewhere()
  try {
    return (await ask()) as PublicKeyCredential
  } catch (error) {
    if (!(error instanceof DOMException)) throw error
    if (error.name === 'SecurityError') throw elsewhere()
    return undefined
  }
}
