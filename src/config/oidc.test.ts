import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { problemsOf } from '../../test/helpers/config-problems.ts'
import { parseConfig, resolveOptions } from './config.ts'
import type { OidcProviderOptions } from './oidc.ts'
import type { Environment } from './reading.ts'

const directory = mkdtempSync(join(tmpdir(), 'ck-oidc-'))
afterAll(() => rmSync(directory, { recursive: true }))

const issuer = 'https://id.example'
const plain = { id: 'corp', issuer, client_id: 'cellkeep' }

const parse = (oidc: readonly unknown[], env: Environment = {}, mode: 'server' | 'command' = 'server') =>
  parseConfig({ env, cwd: directory, mode, file: { path: '/x/c.json', options: { oidc } } }).declarations.oidc

it('a provider needs its id, issuer and client id; the rest has defaults', () => {
  expect(parse([plain])).toEqual([
    {
      ...plain,
      label: 'corp',
      client_auth: 'none',
      scopes: 'openid email profile',
      claims: {
        username: 'preferred_username',
        email: 'email',
        email_verified: 'email_verified',
        name: 'name',
      },
      userinfo: false,
      required_claims: {},
      on_unknown: 'refuse',
      auto_link: 'never',
      trust_email: false,
    },
  ])
  expect(resolveOptions({ cookie_keys: ['k'.repeat(32)] }).declarations).toEqual({})
})

it('the secret comes from the environment, a file that it names, or the options', () => {
  const file = join(directory, 'secret')
  writeFileSync(file, 'from a file\n')
  const env = { CELLKEEP_OIDC_CORP_CLIENT_SECRET: 'from the environment' }
  for (const [client_secret, found] of [
    ['from the environment', parse([{ ...plain, client_secret: 'x' }], env)],
    ['from a file', parse([plain], { CELLKEEP_OIDC_CORP_CLIENT_SECRET_FILE: file })],
    ['own', resolveOptions({ oidc: [{ ...plain, client_secret: 'own' }] }).declarations.oidc],
  ] as const)
    expect(found).toMatchObject([{ client_secret, client_auth: 'client_secret_basic' }])
})

const wrong: [string, Partial<Record<keyof OidcProviderOptions, unknown>>, string][] = [
  ['no id', { id: undefined }, 'id must be 1 to 32 of a-z'],
  ['an id that is no name', { id: 'Corp' }, 'id must be 1 to 32 of a-z'],
  ['a label with a control character', { label: 'a\nb' }, 'label must be 1 to 60 characters'],
  ['an issuer without TLS', { issuer: 'http://id.example' }, 'issuer must be an https URL'],
  [
    'an issuer on the loopback host in production',
    { issuer: 'http://127.0.0.1:1' },
    'issuer must be an https',
  ],
  ['an issuer with a user', { issuer: 'https://u:p@id.example' }, 'issuer must be an https URL'],
  ['an issuer with a query', { issuer: `${issuer}?x` }, 'issuer must be an https URL'],
  ['no client id', { client_id: '' }, 'client_id must be a text'],
  [
    'an unknown way of the client',
    { client_auth: 'private_key_jwt' },
    'client_auth must be client_secret_basic',
  ],
  [
    'a secret that is missing',
    { client_auth: 'client_secret_post' },
    'needs a secret for client_auth: set CELLKEEP_OIDC_CORP_CLIENT_SECRET',
  ],
  ['scopes without openid', { scopes: 'email' }, 'scopes must be scopes separated by spaces'],
  ['an unknown claim', { claims: { mail: 'x' } }, 'claims must be an object with names'],
  [
    'a required claim that is a list',
    { required_claims: { hd: ['x'] } },
    'required_claims must be an object',
  ],
  ['an empty list of domains', { allowed_domains: [] }, 'allowed_domains must be a list of domains'],
  ['an address as a domain', { allowed_domains: ['a@b.c'] }, 'allowed_domains must be a list of domains'],
  [
    'another rule for unknown people',
    { on_unknown: 'allow' },
    'on_unknown must be refuse, invite_only or signup',
  ],
  ['linking by mail without domains', { auto_link: 'both_verified' }, 'needs allowed_domains for auto_link'],
  [
    'a second factor of both kinds',
    { second_factor: { acr: ['a'], amr: ['b'] } },
    'second_factor must be an object',
  ],
  ['a key that is misspelled', { trust_mail: true } as object, 'has an unknown key (keys: id, label, issuer'],
]
it.each(wrong)('%s is refused with entry and rule', (_what, change, rule) => {
  const found = problemsOf(() =>
    parse([
      { ...plain, id: 'other' },
      { ...plain, ...change },
    ]),
  )
  expect(found).toHaveLength(1)
  expect(found[0]).toMatch(/^oidc \(in \/x\/c\.json\) entry 2 /)
  expect(found[0]).toContain(rule)
})

it('all faults are listed at once, and no value is quoted', () => {
  const env = { CELLKEEP_OIDC_OTHER_CLIENT_SECRET: 'hush', CELLKEEP_PORT: 'x' }
  const found = problemsOf(() => parse([plain, plain, { ...plain, id: 'Hush', issuer: 'hush' }, 'hush'], env))
  expect(found).toHaveLength(6)
  expect(found.join('\n')).not.toMatch(/hush/i)
  expect(found).toContain('oidc (in /x/c.json) entry 2 has the same id as another provider')
  expect(found).toContain('CELLKEEP_OIDC_OTHER_CLIENT_SECRET is for a provider that is not configured')
})

it('a secret from two places, or from a file that is not there, is refused', () => {
  const name = 'CELLKEEP_OIDC_CORP_CLIENT_SECRET'
  expect(problemsOf(() => parse([plain], { [name]: 'a', [`${name}_FILE`]: directory }))).toEqual([
    `${name} and ${name}_FILE must not both be set`,
  ])
  expect(problemsOf(() => parse([plain], { [`${name}_FILE`]: join(directory, 'none') }))).toEqual([
    `${name}_FILE names a file that cannot be read (ENOENT)`,
  ])
})

it('providers lead the browser back to a page that is there', () => {
  const redirect = { CELLKEEP_OIDC_REDIRECT_URL: 'https://app.example/back' }
  const missing = (env: Environment, mode?: 'command') => problemsOf(() => parse([plain], env, mode))
  const off = { CELLKEEP_CONSOLE: 'off' }
  const open = { CELLKEEP_HOST: '0.0.0.0', CELLKEEP_ALLOWED_ORIGINS: 'https://app.example' }
  expect(missing(off)).toEqual([
    'CELLKEEP_OIDC_REDIRECT_URL is required for oidc (in /x/c.json) when CELLKEEP_CONSOLE is off',
  ])
  expect(missing(open)).toEqual([
    'CELLKEEP_PUBLIC_URL is required for oidc (in /x/c.json) when the host is not a loopback address',
  ])
  expect([
    missing({ ...off, ...redirect }),
    missing({ ...open, ...redirect }),
    missing(off, 'command'),
  ]).toEqual([[], [], []])
  expect(problemsOf(() => resolveOptions({ oidc: [plain] }))).toEqual([])
})

it('a provider on the loopback host is for development, a command needs no secrets', () => {
  const local = { ...plain, issuer: 'http://127.0.0.1:9000' }
  expect(parse([local], { CELLKEEP_ENV: 'development' })).toMatchObject([local])
  expect(parse([{ ...plain, client_auth: 'client_secret_basic' }], {}, 'command')).toHaveLength(1)
})

it('without the package, the start ends with its name', () => {
  writeFileSync(join(directory, 'cellkeep.config.json'), JSON.stringify({ oidc: [plain] }))
  const hook = `import { registerHooks } from 'node:module'
    registerHooks({ resolve(name, context, next) {
      if (name === 'openid-client') throw Object.assign(new Error('gone'), { code: 'ERR_MODULE_NOT_FOUND' })
      return next(name, context)
    } })`
  const config = (...flags: string[]) =>
    spawnSync(process.execPath, [...flags, resolve('bin/cellkeep.js'), 'config'], {
      cwd: directory,
      encoding: 'utf8',
    })
  expect(config().status).toBe(0)
  const { status, stderr } = config('--import', `data:text/javascript,${encodeURIComponent(hook)}`)
  expect([status, stderr]).toEqual([78, expect.stringContaining('npm install openid-client@6')])
})
