import { describe, expect, it } from 'vitest'
import { type Algorithm, Authenticator, type Forged } from '../../test/helpers/authenticator.ts'
import {
  AssertionResponse,
  creationOptions,
  newChallenge,
  RegistrationResponse,
  requestOptions,
  verifyAssertion,
  verifyRegistration,
} from './webauthn.ts'

const party = {
  id: 'example.org',
  origins: ['https://example.org', 'https://app.example.org'],
  name: 'Example',
}
const account = { id: '11111111-1111-4111-8111-111111111111', username: 'ada' }
const device = (traits?: ConstructorParameters<typeof Authenticator>[1]) =>
  new Authenticator('https://app.example.org', traits)

/** Registers a key; resolves to the outcome. */
async function register(authenticator: Authenticator, forged?: Forged) {
  const challenge = newChallenge()
  const options = await creationOptions(party, account, challenge, [])
  const response = RegistrationResponse.parse(authenticator.create(options, forged))
  return await verifyRegistration(party, challenge, response)
}

/** Registers a proper key, then signs with it. */
async function signIn(authenticator: Authenticator, forged?: Forged, break_?: (text: string) => string) {
  const key = await register(authenticator)
  if (!key) throw new Error('not registered')
  const challenge = newChallenge()
  const response = authenticator.get(await requestOptions(party, challenge), forged)
  if (break_) response.response.signature = break_(response.response.signature)
  return await verifyAssertion(party, challenge, AssertionResponse.parse(response), key)
}

describe('the options', () => {
  it('to register ask for a discoverable key of these algorithms, and none that is known', async () => {
    const known = [{ id: 'abc', transports: ['usb'] }]
    expect(await creationOptions(party, account, newChallenge(), known)).toMatchObject({
      rp: { id: 'example.org', name: 'Example' },
      user: { id: Buffer.from(account.id).toString('base64url'), name: 'ada' },
      pubKeyCredParams: [-7, -8, -257].map((alg) => ({ alg, type: 'public-key' })),
      attestation: 'none',
      authenticatorSelection: { residentKey: 'required', userVerification: 'preferred' },
      excludeCredentials: [{ id: 'abc', transports: ['usb'], type: 'public-key' }],
    })
  })

  it('to sign in name no key; those of a second step name the account’s', async () => {
    expect(await requestOptions(party, newChallenge())).toMatchObject({
      rpId: 'example.org',
      allowCredentials: [],
      userVerification: 'required',
    })
    expect(await requestOptions(party, newChallenge(), [{ id: 'abc', transports: null }])).toMatchObject({
      allowCredentials: [{ id: 'abc', type: 'public-key' }],
      userVerification: 'preferred',
    })
  })

  it('hold 32 random bytes', async () => {
    const challenges = [newChallenge(), newChallenge()]
    expect(new Set(challenges).size).toBe(2)
    for (const challenge of challenges) {
      expect(Buffer.from(challenge, 'base64url')).toHaveLength(32)
      expect((await requestOptions(party, challenge)).challenge).toBe(challenge)
    }
  })
})

const algorithms: [string, Algorithm][] = [
  ['ES256', -7],
  ['EdDSA', -8],
  ['RS256', -257],
]
describe.each(algorithms)('a key of %s', (_name, alg) => {
  it('registers and signs', async () => {
    expect(await register(device({ alg }))).toMatchObject({
      is_verified: true,
      device: 'single',
      backed_up: false,
      transports: ['internal'],
    })
    expect(await signIn(device({ alg, uv: false, be: true, bs: true, counts: false }))).toEqual({
      counter: 0,
      is_verified: false,
      device: 'synced',
      backed_up: true,
    })
  })

  it('proves nothing with another signature', async () => {
    const flipped = (text: string) => `${text.startsWith('A') ? 'B' : 'A'}${text.slice(1)}`
    expect(await signIn(device({ alg }), {}, flipped)).toBeUndefined()
    expect(await signIn(device({ alg }), {}, () => '')).toBeUndefined()
  })
})

const forgeries: [string, Forged][] = [
  ['another challenge', { challenge: newChallenge() }],
  ['another origin', { origin: 'https://example.org.evil.example' }],
  ['an origin of the same site that is not listed', { origin: 'https://www.example.org' }],
  ['another RP id', { rpId: 'org' }],
  ['another type', { type: 'payment.get' }],
  ['nobody present', { up: false }],
  ['a frame of another site', { crossOrigin: true }],
  ['a frame, named by its page only', { topOrigin: 'https://evil.example' }],
  ['a synced state of a key that cannot be synced', { be: false, bs: true }],
  ['far more data than an authenticator has', { extension: Buffer.alloc(8_192) }],
]
it('a response may have data of an extension', async () => {
  const extension = Buffer.alloc(4_096)
  expect(await register(device(), { extension })).toBeDefined()
  expect(await signIn(device(), { extension })).toBeDefined()
})

describe('a response is refused', () => {
  it.each(forgeries)('with %s', async (_what, forged) => {
    expect(await register(device(), forged)).toBeUndefined()
    expect(await signIn(device(), forged)).toBeUndefined()
  })

  it('of an algorithm that was not asked for', async () => {
    expect(await register(device({ alg: -35 }))).toBeUndefined()
  })

  it('with a certificate, which is not even read', async () => {
    const attStmt = new Map<string, never>([['x5c', [Buffer.from('certificate')] as never]])
    expect(await register(device(), { fmt: 'packed', attStmt })).toBeUndefined()
    expect(await register(device(), { fmt: 'tpm' })).toBeUndefined()
  })

  it('that names another key than the one it attests', async () => {
    const challenge = newChallenge()
    const whole = device().create(await creationOptions(party, account, challenge, []))
    expect(await verifyRegistration(party, challenge, whole)).toMatchObject({ id: whole.id })
    const other = { ...whole, id: 'AAAA', rawId: 'AAAA' }
    expect(await verifyRegistration(party, challenge, other)).toBeUndefined()
  })

  it('cut, nested or filled, and nothing throws', async () => {
    const challenge = newChallenge()
    const whole = device().create(await creationOptions(party, account, challenge, []))
    const object = whole.response.attestationObject
    const nested = Buffer.concat([Buffer.alloc(40_000, 0x81), Buffer.of(0)]).toString('base64url')
    for (const attestationObject of [
      '',
      object.slice(0, 40),
      object.slice(0, -8),
      nested,
      'A'.repeat(60_000),
    ]) {
      const response = { ...whole, response: { ...whole.response, attestationObject } }
      expect(await verifyRegistration(party, challenge, response)).toBeUndefined()
    }
    for (const clientDataJSON of ['', 'bnVsbA', 'W10', 'A'.repeat(60_000)]) {
      const response = { ...whole, response: { ...whole.response, clientDataJSON } }
      expect(await verifyRegistration(party, challenge, response)).toBeUndefined()
    }
  })

  it('larger than 64 KiB, by its schema', async () => {
    const whole = device().create(await creationOptions(party, account, newChallenge(), []))
    expect(RegistrationResponse.safeParse({ ...whole, extra: 'x'.repeat(60_000) }).success).toBe(true)
    expect(RegistrationResponse.safeParse({ ...whole, extra: 'x'.repeat(65_536) }).success).toBe(false)
  })

  it('whatever else is wrong with it, and drops what is not read', async () => {
    const whole = device().create(await creationOptions(party, account, newChallenge(), []))
    const inner = { ...whole.response, extra: 1 }
    expect(RegistrationResponse.parse({ ...whole, extra: 1, response: inner })).toEqual({
      id: whole.id,
      rawId: whole.rawId,
      type: whole.type,
      response: whole.response,
    })
    const { error } = RegistrationResponse.safeParse({ id: '=', extra: 'x'.repeat(65_536) })
    expect(error?.issues.map(({ code }) => code)).toEqual(['too_big'])
  })
})
