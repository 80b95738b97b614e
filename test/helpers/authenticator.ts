import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** A software authenticator with the browser in front of it: answers WebAuthn options as a real pair of them does. */
export class Authenticator {
  readonly #keys = new Map<string, Key>()
  readonly #origin: string
  readonly #traits: Traits

  constructor(origin: string, traits: Partial<Traits> = {}) {
    this.#origin = origin
    this.#traits = { alg: -7, uv: true, up: true, be: false, bs: false, counts: true, ...traits }
  }

  /** Registers a new key, as `navigator.credentials.create` does. */
  create(options: CreationOptions, forged: Forged = {}): RegistrationResponse {
    const { rp, user, challenge } = options
    const id = forged.id ?? randomBytes(32).toString('base64url')
    const { alg } = { ...this.#traits, ...forged }
    const key: Key = { ...makeKey(alg), alg, user: user.id, rpId: rp.id ?? '', counter: 0 }
    this.#keys.set(id, key)
    const rawId = Buffer.from(id, 'base64url')
    const attested = [aaguid, u16(rawId.length), rawId, encode(key.cose)]
    const authData = Buffer.concat([
      this.#head(key, { ...forged, at: true }),
      ...attested,
      ...extensionOf(forged),
    ])
    const attestation = encode(
      new Map<string, Cbor>([
        ['fmt', forged.fmt ?? 'none'],
        ['attStmt', forged.attStmt ?? new Map()],
        ['authData', authData],
      ]),
    )
    return {
      id,
      rawId: id,
      type: 'public-key',
      response: {
        clientDataJSON: this.#clientData('webauthn.create', challenge, forged),
        attestationObject: attestation.toString('base64url'),
        transports: ['internal'],
      },
      authenticatorAttachment: 'platform',
      clientExtensionResults: {},
    }
  }

  /** Signs with the key that the options allow, else with the newest, as `navigator.credentials.get` does. */
  get(options: RequestOptions, forged: Forged = {}): AuthenticationResponse {
    const allowed = options.allowCredentials?.map(({ id }) => id) ?? []
    const id = [...this.#keys.keys()].findLast((one) => allowed.length === 0 || allowed.includes(one))
    const key = id === undefined ? undefined : this.#keys.get(id)
    if (id === undefined || !key) throw new Error('The authenticator has none of these keys.')
    const clientDataJSON = this.#clientData('webauthn.get', options.challenge, forged)
    const authenticatorData = Buffer.concat([this.#head(key, forged), ...extensionOf(forged)])
    const signed = Buffer.concat([authenticatorData, sha256(Buffer.from(clientDataJSON, 'base64url'))])
    return {
      id: forged.id ?? id,
      rawId: forged.id ?? id,
      type: 'public-key',
      response: {
        clientDataJSON,
        authenticatorData: authenticatorData.toString('base64url'),
        signature: sign(key.alg === -8 ? null : 'sha256', signed, key.privateKey).toString('base64url'),
        userHandle: forged.userHandle ?? key.user,
      },
      authenticatorAttachment: 'platform',
      clientExtensionResults: {},
    }
  }

  #clientData(type: string, challenge: string, forged: Forged): string {
    const { crossOrigin = false, topOrigin } = forged
    const data = {
      type: forged.type ?? type,
      challenge: forged.challenge ?? challenge,
      origin: forged.origin ?? this.#origin,
      crossOrigin,
      ...(topOrigin && { topOrigin }),
    }
    return Buffer.from(JSON.stringify(data)).toString('base64url')
  }

  /** The first 37 bytes of the authenticator data: RP id, flags, counter. */
  #head(key: Key, forged: Forged & { at?: boolean }): Buffer {
    const { up, uv, be, bs, counts } = { ...this.#traits, ...forged }
    if (counts) key.counter++
    const flags = [
      up && 0x01,
      uv && 0x04,
      be && 0x08,
      bs && 0x10,
      forged.at && 0x40,
      forged.extension && 0x80,
    ]
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(forged.counter ?? key.counter)
    return Buffer.concat([
      sha256(forged.rpId ?? key.rpId),
      Buffer.of(flags.reduce<number>((sum, flag) => sum + (flag || 0), 0)),
      counter,
    ])
  }
}

/** COSE algorithms: ES256, EdDSA, RS256; ES384 is one that the service does not ask for. */
export type Algorithm = -7 | -8 | -257 | -35
type Traits = {
  alg: Algorithm
  uv: boolean
  up: boolean
  /** Backup eligible: the key may be synced; `bs`: it is. */
  be: boolean
  bs: boolean
  /** False: the counter stays 0, as with synced keys. */
  counts: boolean
}
/** What an attacker, or a broken device, sends instead of the right value. */
export type Forged = Partial<Traits> & {
  id?: string
  type?: string
  challenge?: string
  origin?: string
  rpId?: string
  counter?: number
  userHandle?: string
  crossOrigin?: boolean
  topOrigin?: string
  fmt?: string
  attStmt?: Map<string, Cbor>
  /** What an extension of the authenticator adds to its data. */
  extension?: Buffer
}
type Key = {
  privateKey: KeyObject
  cose: Map<number, Cbor>
  alg: Algorithm
  user: string
  rpId: string
  counter: number
}
type CreationOptions = { challenge: string; rp: { id?: string }; user: { id: string } }
type RequestOptions = { challenge: string; allowCredentials?: { id: string }[] }
type Response<R> = {
  id: string
  rawId: string
  type: 'public-key'
  response: R
  authenticatorAttachment: string
  clientExtensionResults: object
}
export type RegistrationResponse = Response<{
  clientDataJSON: string
  attestationObject: string
  transports: string[]
}>
export type AuthenticationResponse = Response<{
  clientDataJSON: string
  authenticatorData: string
  signature: string
  userHandle: string
}>

const extensionOf = ({ extension }: Forged): Buffer[] =>
  extension ? [encode(new Map([['extension', extension]]))] : []
const aaguid = Buffer.alloc(16)
const sha256 = (data: string | Buffer): Buffer => createHash('sha256').update(data).digest()

/** A key pair, and its public half as COSE writes it. */
function makeKey(alg: Algorithm): { privateKey: KeyObject; cose: Map<number, Cbor> } {
  const { privateKey, publicKey } =
    alg === -257
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : alg === -8
        ? generateKeyPairSync('ed25519')
        : generateKeyPairSync('ec', { namedCurve: alg === -7 ? 'P-256' : 'P-384' })
  const jwk = publicKey.export({ format: 'jwk' })
  const bytes = (part: string | undefined): Buffer => Buffer.from(part ?? '', 'base64url')
  const x = bytes(jwk.x)
  const ec: [number, Cbor][] = [
    [-1, alg === -7 ? 1 : 2],
    [-2, x],
    [-3, bytes(jwk.y)],
  ]
  const okp: [number, Cbor][] = [
    [-1, 6],
    [-2, x],
  ]
  const rsa: [number, Cbor][] = [
    [-1, bytes(jwk.n)],
    [-2, bytes(jwk.e)],
  ]
  const [type, parts]: [number, [number, Cbor][]] = alg === -257 ? [3, rsa] : alg === -8 ? [1, okp] : [2, ec]
  return { privateKey, cose: new Map<number, Cbor>([[1, type], [3, alg], ...parts]) }
}

type Cbor = number | string | Buffer | Cbor[] | Map<string | number, Cbor>

/** The few types of CBOR that WebAuthn uses. */
function encode(value: Cbor): Buffer {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value])
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(encode)])
  return Buffer.concat([head(5, value.size), ...[...value].flat().map((one) => encode(one as Cbor))])
}

function head(major: number, size: number): Buffer {
  if (size < 24) return Buffer.of((major << 5) | size)
  return size < 256
    ? Buffer.of((major << 5) | 24, size)
    : Buffer.concat([Buffer.of((major << 5) | 25), u16(size)])
}

function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}
