import { describe, expect, expectTypeOf, it } from 'vitest'
import { problemsOf } from '../../test/helpers/config-problems.ts'
import { type Config, type ConfigOptions, parseConfig, resolveOptions } from './config.ts'
import type { Environment } from './reading.ts'

const cwd = '/nonexistent'
const key = 'k'.repeat(43)

const parse = (env: Environment, options: Record<string, unknown>) =>
  parseConfig({ env, cwd, mode: 'server', file: { path: '/x/cellkeep.config.json', options } })

describe('config file and options', () => {
  it('the environment wins over the file, the file over the default', () => {
    const { config, sources } = parse({ CELLKEEP_PORT: '1' }, { port: 2, cors: true })
    expect(config).toMatchObject({ port: 1, cors: true, config: '/x/cellkeep.config.json' })
    expect(sources).toMatchObject({ port: 'env', cors: 'file', host: 'default' })
  })

  it('values are of their own type; lists, limits and costs also as text', () => {
    const options: ConfigOptions = {
      port: 80,
      cors: true,
      max_sessions: null,
      max_tokens: 'off',
      limit_login_ip: '9/60',
      limit_cell_read: null,
      trusted_proxies: ['10.0.0.0/8', ' ::1 '],
      allowed_origins: 'https://a.example,https://b.example',
      cookie_keys: [key],
      cleanup_interval_s: 0,
      host: undefined,
      database_url: null,
    }
    expect(resolveOptions(options, cwd).config).toMatchObject({
      port: 80,
      cors: true,
      max_sessions: null,
      max_tokens: null,
      limit_login_ip: { max: 9, seconds: 60 },
      limit_cell_read: null,
      trusted_proxies: ['10.0.0.0/8', '::1'],
      allowed_origins: ['https://a.example', 'https://b.example'],
      cookie_keys: [key],
      cleanup_interval_s: null,
      host: '127.0.0.1',
    })
  })

  const wrong: Record<string, unknown> = {
    port: '80',
    cors: 'true',
    host: '',
    database_url: '',
    cookie_keys: [1],
    allowed_origins: [],
    max_sessions: 1.5,
    env: null,
    roles: {},
    hooks: [],
    authorize_offer: 'yes',
    self_service_roles: 'editor',
    config: 'other.ts',
    prot: 1,
    __proto_: 1,
    toString: 1,
  }
  it.each(Object.entries(wrong))('%s of a wrong form is refused with file, key and rule', (name, value) => {
    const found = problemsOf(() => parse({}, { cookie_keys: [key], [name]: value }))
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(new RegExp(`^${name} \\(in /x/cellkeep\\.config\\.json\\) \\w+`))
  })

  it('a bad entry of a list is named by its position, a bad limit with what is accepted', () => {
    expect(
      problemsOf(() => resolveOptions({ trusted_proxies: ['::1', 'x'], limit_lookup: '0/9' }, cwd)),
    ).toEqual([
      'trusted_proxies entry 2 must be an IP address or a CIDR network',
      'limit_lookup must be max/seconds like 5/900 (1 to 1000000 in 1 to 86400 s), or off',
    ])
  })

  it('an own key __proto__ is an unknown key like any other', () => {
    const options = JSON.parse('{"__proto__": {"port": 1}}')
    expect(problemsOf(() => parse({}, options))[0]).toMatch(/^__proto__ .* is not a setting/)
    expect(Object.prototype).not.toHaveProperty('port')
  })

  it('a bad value in the file is a problem even when the environment overrules it', () => {
    expect(problemsOf(() => parse({ CELLKEEP_PORT: '1' }, { port: -1 }))).toHaveLength(1)
  })

  it('rules across settings name the file for what the file says', () => {
    const found = problemsOf(() => parse({ CELLKEEP_HOST: '0.0.0.0' }, { cookie_secure: false }))
    expect(found).toContain(
      'cookie_secure (in /x/cellkeep.config.json) may be false only when CELLKEEP_HOST is a loopback address',
    )
  })

  it('declarations are passed on as they are', () => {
    const authorize_offer = () => true
    const given = { roles: [{ name: 'editor' }], hooks: { validateData() {} }, authorize_offer }
    expect(parse({}, { ...given, port: 1 }).declarations).toEqual(given)
  })

  it.each([
    ['roles', 'a list'],
    ['oidc', 'a list'],
    ['actions', 'an object'],
    ['deliver', 'a function'],
  ])('a declaration of another form is a problem, as of %s', (name, rule) => {
    for (const given of [1, 'x', true, null, rule === 'a list' ? {} : []])
      expect(problemsOf(() => parse({}, { [name]: given }))).toEqual([
        `${name} (in /x/cellkeep.config.json) must be ${rule}`,
      ])
  })

  it('a second way to deliver messages, besides the option deliver, is a problem', () => {
    const smtp = {
      CELLKEEP_SMTP_URL: 'smtps://user:hunter2hunter2@mail.example',
      CELLKEEP_MAIL_FROM: 'a@app.example',
    }
    const delivered = 'must not be set together with the option deliver, which delivers the messages'
    expect(problemsOf(() => parse(smtp, { deliver() {} }))).toEqual([`CELLKEEP_SMTP_URL ${delivered}`])
    expect(problemsOf(() => parse({ CELLKEEP_MAIL: 'file' }, { deliver() {} }))).toEqual([
      `CELLKEEP_MAIL ${delivered}`,
    ])
    expect(parse({ CELLKEEP_MAIL: 'hook' }, { deliver() {} }).config.mail).toBe('hook')
    expect(parse(smtp, {}).config.mail).toBe('smtp')
  })

  it('a hook that is unknown or no function is a problem with its name, the right one, and the file', () => {
    const hooks = { validatData: () => ({}), authorizeCreate: 7, validateData: undefined }
    expect(problemsOf(() => parse({}, { hooks, rolez: [] }))).toEqual([
      'hooks.validatData (in /x/cellkeep.config.json) is not a hook; did you mean validateData? (hooks: authorizeCreate, validateData)',
      'hooks.authorizeCreate (in /x/cellkeep.config.json) must be a function',
      'rolez (in /x/cellkeep.config.json) is not a setting; did you mean roles?',
    ])
  })

  it('the library names options by their keys', () => {
    const options = { cookie_secure: false, host: 'app.example' } as const
    expect(problemsOf(() => resolveOptions(options, cwd))).toEqual([
      expect.stringMatching(/^allowed_origins is required when host is not/),
      'cookie_secure may be false only when host is a loopback address',
    ])
  })

  it.each([
    [{ cookie_keys: [''] }, /^cookie_keys must have at least one key: `cellkeep keys generate` makes one$/],
    [{ cookie_keys: ['short'] }, /^cookie_keys .*`cellkeep keys generate`/],
    [
      { cookie_keys: [`${'k'.repeat(43)}\n${'l'.repeat(43)}`] },
      /^cookie_keys must have commas between its keys, not line breaks$/,
    ],
    [{ public_url: 'https://app.example/' }, /^public_url .*without a path or a trailing slash/],
  ])('%j says what to give instead', (options, message) => {
    expect(problemsOf(() => resolveOptions(options, cwd))).toContainEqual(expect.stringMatching(message))
  })

  it('types follow the table', () => {
    expectTypeOf<Config['env']>().toEqualTypeOf<'production' | 'development'>()
    expectTypeOf<Config['max_sessions']>().toEqualTypeOf<number | null>()
    expectTypeOf<Config['cookie_keys']>().toEqualTypeOf<readonly string[] | null>()
    expectTypeOf<Config['cors']>().toEqualTypeOf<boolean>()
    expectTypeOf<{ port: 'x' }>().not.toExtend<ConfigOptions>()
    expectTypeOf<{ limit_login_ip: '5/900'; max_sessions: null }>().toExtend<ConfigOptions>()
  })
})
