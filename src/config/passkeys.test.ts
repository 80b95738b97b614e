import { describe, expect, it } from 'vitest'
import { ConfigError, parseConfig } from './config.ts'
import type { Environment } from './reading.ts'

const parse = (env: Environment) => parseConfig({ env, cwd: '/nonexistent', mode: 'server' }).config
const at = (public_url: string, more: Record<string, string> = {}): Environment => ({
  CELLKEEP_PUBLIC_URL: public_url,
  ...Object.fromEntries(Object.entries(more).map(([key, value]) => [`CELLKEEP_${key.toUpperCase()}`, value])),
})
function problems(env: Environment): readonly string[] {
  try {
    parse(env)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

describe('passkeys', () => {
  it.each([
    ['https://app.example', 'app.example'],
    ['https://app.example:8443', 'app.example'],
    ['http://localhost:4040', 'localhost'],
  ])('are on for %s, of the domain %s', (url, rp_id) => {
    expect(parse(at(url))).toMatchObject({ passkeys: true, rp_id, passkey_origins: [url] })
    expect(parse(at(url, { passkeys: 'false' }))).toMatchObject({ passkeys: false })
  })

  it.each(['http://127.0.0.1:4040', 'http://[::1]:4040', 'https://192.0.2.1', 'https://intranet'])(
    'are off for %s, and refused if asked for',
    (url) => {
      expect(parse(at(url))).toMatchObject({ passkeys: false, rp_id: null })
      expect(problems(at(url, { passkeys: 'true' }))).toEqual([
        'CELLKEEP_PUBLIC_URL must have a domain name or localhost as its host for passkeys',
      ])
    },
  )

  it.each([
    ['localhost', '4040', 'http://localhost:4040'],
    ['LOCALHOST', '80', 'http://localhost'],
  ])('are on for a server on %s, port %s', (host, port, public_url) => {
    const env = { CELLKEEP_HOST: host, CELLKEEP_PORT: port }
    const expected = { public_url, passkeys: true, rp_id: 'localhost', passkey_origins: [public_url] }
    expect(parse(env)).toMatchObject(expected)
    expect(problems({ ...env, CELLKEEP_PASSKEYS: 'true' })).toEqual([])
  })

  it('are off on a machine that nobody configured', () => {
    expect(parse({})).toMatchObject({ passkeys: false })
  })

  it('may belong to a domain above that of the public URL, with several origins below it', () => {
    const origins = 'https://app.example.org,https://example.org:8443'
    const env = at('https://app.example.org', { rp_id: 'example.org', passkey_origins: origins })
    expect(parse(env)).toMatchObject({ passkeys: true, rp_id: 'example.org' })
  })

  it.each([
    ['127.0.0.1', /CELLKEEP_RP_ID must be a domain name/],
    ['org', /CELLKEEP_RP_ID must be a domain name/],
    ['1.2.3.4', /CELLKEEP_RP_ID must be a domain name/],
    ['evil.example', /CELLKEEP_RP_ID must be the host of CELLKEEP_PUBLIC_URL or a domain above it/],
    ['pp.example.org', /CELLKEEP_RP_ID must be the host/],
    ['www.app.example.org', /CELLKEEP_RP_ID must be the host/],
  ])('never belong to %s', (rp_id, rule) => {
    expect(problems(at('https://app.example.org', { rp_id })).join()).toMatch(rule)
  })

  it.each([
    ['https://app.example.co.uk', 'co.uk'],
    ['https://me.github.io', 'github.io'],
  ])('of %s never belong to %s, below which others have names', (url, rp_id) => {
    expect(problems(at(url, { rp_id }))).toEqual([
      `CELLKEEP_RP_ID must be a domain of your own: anyone may register names below ${rp_id}, so browsers keep no passkeys for it`,
    ])
    expect(problems(at(url))).toEqual([])
  })

  it('may belong to a public suffix that is the host itself', () => {
    expect(parse(at('https://github.io'))).toMatchObject({ passkeys: true, rp_id: 'github.io' })
    const origins = 'https://github.io,https://me.github.io'
    expect(problems(at('https://github.io', { passkey_origins: origins })).join()).toMatch(/of your own/)
  })

  it.each([
    'https://evil.example',
    'http://app.example.org',
    'https://app.example.org/',
    'https://notapp.example.org',
  ])('are never used at %s', (passkey_origins) => {
    expect(problems(at('https://app.example.org', { passkey_origins })).join()).toMatch(
      /^CELLKEEP_PASSKEY_ORIGINS (entry 1 )?must be/,
    )
  })
})
