import { describe, expect, it } from 'vitest'
import { problemsOf } from '../../../test/helpers/config-problems.ts'
import { parseConfig } from '../config.ts'
import type { Environment } from '../reading.ts'

const cwd = '/nonexistent'
const key = 'k'.repeat(43)
const url = 'postgres://user:hunter2hunter2@db.example/app'

const parse = (env: Environment, options?: Record<string, unknown>) =>
  parseConfig({
    env,
    cwd,
    mode: 'server',
    ...(options && { file: { path: '/x/cellkeep.config.json', options } }),
  })

const problems = (env: Environment) => problemsOf(() => parse(env))

describe('several settings', () => {
  it('every problem is listed at once', () => {
    const found = problems({ CELLKEEP_HOST: '0.0.0.0', CELLKEEP_DATABASE_URL: url, CELLKEEP_PORT: 'x' })
    expect(found.map((problem) => problem.split(' ')[0])).toEqual([
      'CELLKEEP_PORT',
      'CELLKEEP_ALLOWED_ORIGINS',
      'CELLKEEP_COOKIE_KEYS',
    ])
  })

  it('roles that nobody registered are listed with the other problems, under the name of their variable', () => {
    const env = { CELLKEEP_REQUIRE_SECOND_FACTOR: 'amdin,admin,reader', CELLKEEP_PORT: 'x' }
    expect(problemsOf(() => parse(env, { roles: [null, { name: 'editor' }] }))).toEqual([
      'CELLKEEP_PORT must be a whole number from 0 to 65535',
      'CELLKEEP_REQUIRE_SECOND_FACTOR entry 1 must be a registered role; did you mean admin?',
      'CELLKEEP_REQUIRE_SECOND_FACTOR entry 3 must be a registered role; declare it in roles',
    ])
  })

  it('a broken value is not reported as missing too', () => {
    expect(problems({ CELLKEEP_HOST: '0.0.0.0', CELLKEEP_ALLOWED_ORIGINS: ',' })).toHaveLength(1)
    expect(problems({ CELLKEEP_DATABASE_URL: url, CELLKEEP_COOKIE_KEYS: 'x' })).toHaveLength(1)
  })

  const rules: [rule: string, env: Environment, fine: Environment][] = [
    ['origins off loopback', { CELLKEEP_HOST: '::' }, { CELLKEEP_HOST: '127.9.9.9' }],
    ['cookie keys with PostgreSQL', { CELLKEEP_DATABASE_URL: url }, { CELLKEEP_COOKIE_KEYS: key }],
    [
      'insecure cookie off loopback',
      { CELLKEEP_HOST: 'app', CELLKEEP_ALLOWED_ORIGINS: 'http://app', CELLKEEP_COOKIE_SECURE: 'false' },
      { CELLKEEP_HOST: 'LOCALHOST', CELLKEEP_COOKIE_SECURE: 'false' },
    ],
    [
      'host prefix of an insecure cookie',
      { CELLKEEP_COOKIE_HOST_PREFIX: 'true', CELLKEEP_COOKIE_SECURE: 'false' },
      { CELLKEEP_COOKIE_HOST_PREFIX: 'true' },
    ],
    [
      'weak hash: memory',
      { CELLKEEP_ARGON2: '19455,2,1' },
      { CELLKEEP_ARGON2: '8,1,1', CELLKEEP_ENV: 'development' },
    ],
    ['weak hash: passes', { CELLKEEP_ARGON2: '65536,1,1' }, { CELLKEEP_ARGON2: '19456,2,1' }],
    [
      'texts of messages in no directory',
      { CELLKEEP_MAIL_TEMPLATES: '/nonexistent' },
      { CELLKEEP_MAIL_TEMPLATES: '/' },
    ],
    ['rpc = ws', { CELLKEEP_RPC_PATH: '/api/ws' }, { CELLKEEP_RPC_PATH: '/api/ws2' }],
    ['account = rpc', { CELLKEEP_ACCOUNT_PATH: '/api/rpc' }, { CELLKEEP_ACCOUNT_PATH: '/api' }],
    ['stream = ws', { CELLKEEP_AUDIT_STREAM_PATH: '/api/ws' }, { CELLKEEP_AUDIT_STREAM_PATH: '/api/events' }],
    [
      'rpc on an account route',
      { CELLKEEP_RPC_PATH: '/api/account/login' },
      { CELLKEEP_RPC_PATH: '/api/account/rpc' },
    ],
    ['rpc on health', { CELLKEEP_RPC_PATH: '/health/live' }, { CELLKEEP_RPC_PATH: '/healthy' }],
    ['ws on readiness', { CELLKEEP_WS_PATH: '/ready' }, { CELLKEEP_WS_PATH: '/ready2' }],
    [
      'account under health',
      { CELLKEEP_ACCOUNT_PATH: '/health/account' },
      { CELLKEEP_ACCOUNT_PATH: '/healthy/account' },
    ],
    [
      'account below the console',
      { CELLKEEP_ACCOUNT_PATH: '/admin' },
      { CELLKEEP_ACCOUNT_PATH: '/admin', CELLKEEP_CONSOLE: 'off' },
    ],
    ['rpc on a page', { CELLKEEP_RPC_PATH: '/setup' }, { CELLKEEP_RPC_PATH: '/setup/rpc' }],
    [
      'ws among the files of pages',
      { CELLKEEP_WS_PATH: '/pages/ws' },
      { CELLKEEP_WS_PATH: '/pages/ws', CELLKEEP_PAGES: 'false' },
    ],
  ]
  it.each(rules)('%s is refused', (_, env, fine) => {
    expect(problems(env)).toHaveLength(1)
    expect(problems(fine)).toEqual([])
  })

  it('a command needs neither origins nor cookie keys, yet checks what is given', () => {
    const env = { CELLKEEP_HOST: '0.0.0.0', CELLKEEP_DATABASE_URL: url }
    const { config } = parseConfig({ env, cwd, mode: 'command' })
    expect(config).toMatchObject({ database_url: url, cookie_keys: null, allowed_origins: [] })
    const bad = { ...env, CELLKEEP_COOKIE_KEYS: 'x' }
    expect(problemsOf(() => parseConfig({ env: bad, cwd, mode: 'command' }))).toHaveLength(1)
  })
})

describe('warnings', () => {
  it('name unknown variables and the one that was probably meant', () => {
    const { warnings } = parse({ CELLKEEP_PROT: '1', CELLKEEP_SERVICE_HOST: 'x', OTHER: '1' })
    expect(warnings).toEqual([
      'CELLKEEP_PROT is not a setting; did you mean CELLKEEP_PORT?',
      'CELLKEEP_SERVICE_HOST is not a setting',
    ])
  })

  it('tell of roles that require a second factor which nobody can add', () => {
    const roles = { CELLKEEP_REQUIRE_SECOND_FACTOR: 'admin' }
    const own = { ...roles, CELLKEEP_DATABASE_URL: url, CELLKEEP_COOKIE_KEYS: key }
    expect(parse(own).warnings).toEqual([
      'CELLKEEP_REQUIRE_SECOND_FACTOR locks out holders of these roles, because nobody can add a second factor here: ' +
        'set CELLKEEP_SECRET_KEYS for TOTP, or CELLKEEP_PUBLIC_URL for passkeys',
    ])
    for (const env of [
      roles,
      { ...own, CELLKEEP_SECRET_KEYS: key },
      { ...own, CELLKEEP_PUBLIC_URL: 'https://app.example' },
    ])
      expect(parse(env).warnings).toEqual([])
  })

  it('tell of links that lead to this machine, although people come through a proxy', () => {
    const proxied = { CELLKEEP_MAIL: 'file', CELLKEEP_TRUSTED_PROXIES: '127.0.0.1' }
    expect(parse(proxied).warnings).toEqual([
      'CELLKEEP_PUBLIC_URL is not set: links in messages lead to http://127.0.0.1:4040, which people cannot reach through a proxy',
    ])
    for (const env of [
      { ...proxied, CELLKEEP_PUBLIC_URL: 'https://app.example' },
      { ...proxied, CELLKEEP_LINK_URL: 'https://app.example/link' },
      { CELLKEEP_TRUSTED_PROXIES: '127.0.0.1' },
      { CELLKEEP_MAIL: 'file' },
    ])
      expect(parse(env).warnings).toEqual([])
  })

  it('tell of IP limiters that are off, but of no others', () => {
    const { warnings } = parse({ CELLKEEP_LIMIT_LOGIN_IP: 'off', CELLKEEP_LIMIT_LOGIN_ACCOUNT: 'off' })
    expect(warnings).toEqual(['CELLKEEP_LIMIT_LOGIN_IP is off: attempts from one address are not limited'])
  })
})
