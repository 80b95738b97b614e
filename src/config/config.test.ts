import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { anyCharacter } from '../../test/helpers/any-character.ts'
import { type Config, ConfigError, parseConfig, resolveOptions, withDataDir } from './config.ts'
import { written } from './kinds.ts'
import type { Environment } from './reading.ts'
import type { AnySetting } from './setting.ts'
import { type Key, keys, settings } from './table.ts'

const cwd = mkdtempSync(join(tmpdir(), 'ck-config-'))
afterAll(() => rmSync(cwd, { recursive: true }))

const key = 'k'.repeat(43)
const other = 'o'.repeat(43)
const url = 'postgres://user:hunter2hunter2@db.example/app'

const parse = (env: Environment) => parseConfig({ env, cwd, mode: 'server' })

function problems(env: Environment): readonly string[] {
  try {
    parse(env)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    const { problems, message, reason, exitCode } = error as ConfigError
    expect({ reason, exitCode }).toEqual({ reason: 'configuration', exitCode: 78 })
    for (const problem of problems) expect(message).toContain(problem)
    return problems
  }
  return []
}
const secretFile = (name: string, content: string): string => {
  writeFileSync(join(cwd, name), content)
  return name
}

describe('without any setting', () => {
  it('serves in production on the loopback address with the embedded database', () => {
    const { config, sources, warnings } = parse({ DATABASE_URL: url, PORT: '1' })
    expect(config).toMatchObject({
      env: 'production',
      host: '127.0.0.1',
      port: 4040,
      config: null,
      data_dir: join(cwd, '.cellkeep'),
      database_url: null,
      cookie_keys: null,
      cookie_secure: true,
      allowed_origins: ['http://localhost:*', 'http://127.0.0.1:*', 'http://[::1]:*'],
      trusted_proxies: [],
      audit_stream_path: '/api/account/audit/stream',
      bootstrap: 'live',
      bootstrap_token_path: join(cwd, '.cellkeep', 'bootstrap_token'),
      argon2: { memoryCost: 19456, timeCost: 2, parallelism: 1 },
      limit_login_ip: { max: 30, seconds: 900 },
      cleanup_interval_s: 600,
      audit_retention_days: null,
    })
    expect(new Set(Object.values(sources))).toEqual(new Set(['default']))
    expect(warnings).toEqual([])
    expect(Object.keys(config).sort()).toEqual([...keys].sort())
  })

  it('the library has its own defaults', () => {
    const { config } = resolveOptions({}, cwd)
    expect(config).toMatchObject({ bootstrap: 'disabled', audit_stream: false, app_settings: false })
    expect(config.cleanup_interval_s).toBeNull()
  })

  it('defaults in the data dir and under the account path follow them', () => {
    const { config } = parse({ CELLKEEP_DATA_DIR: '/srv/ck', CELLKEEP_ACCOUNT_PATH: '/me' })
    expect(config.bootstrap_token_path).toBe('/srv/ck/bootstrap_token')
    expect(config.audit_stream_path).toBe('/me/audit/stream')
    expect(withDataDir(parse({}), '/var/lib/cellkeep').config).toMatchObject({
      data_dir: '/var/lib/cellkeep',
      bootstrap_token_path: '/var/lib/cellkeep/bootstrap_token',
    })
    const given = parse({ CELLKEEP_BOOTSTRAP_TOKEN_PATH: 'token' })
    expect(withDataDir(given, '/var/lib/cellkeep').config.bootstrap_token_path).toBe(join(cwd, 'token'))
  })
})

const computed = keys.flatMap((key) => {
  const { default: given } = settings[key] as AnySetting
  return typeof given === 'function' ? [[key, given] as const] : []
})
it.each(computed)('the default of %s depends on earlier rows only, whose values are known', (key, given) => {
  const read = new Set<string>()
  const known = new Proxy(parse({}).config, {
    get(all, name: Key) {
      read.add(name)
      return all[name]
    },
  })
  given(known)
  const earlier: string[] = keys.slice(0, keys.indexOf(key))
  expect([...read].filter((name) => name !== 'deliver' && !earlier.includes(name))).toEqual([])
})

describe('one value', () => {
  const accepted: [name: keyof Config, text: string, value: unknown][] = [
    ['env', 'development', 'development'],
    ['host', '::1', '::1'],
    ['host', 'localhost', 'localhost'],
    ['port', '0', 0],
    ['port', '65535', 65535],
    ['database_pool_max', '200', 200],
    ['statement_timeout_ms', '100', 100],
    ['cookie_keys', ` ${key} ,, ${other},`, [key, other]],
    ['cookie_keys', 'x'.repeat(32), ['x'.repeat(32)]],
    ['cookie_secure', 'false', false],
    [
      'allowed_origins',
      'https://a.example, https://*.b.example:*',
      ['https://a.example', 'https://*.b.example:*'],
    ],
    ['trusted_proxies', '10.0.0.0/8, ::1', ['10.0.0.0/8', '::1']],
    ['rpc_path', '/v1/rpc_x-2', '/v1/rpc_x-2'],
    ['max_sessions', 'off', null],
    ['max_sessions', '1000', 1000],
    ['login_fail_floor_ms', '-1', -1],
    ['argon2', '65536,3,4', { memoryCost: 65536, timeCost: 3, parallelism: 4 }],
    ['limit_login_ip', '1000000/86400', { max: 1_000_000, seconds: 86_400 }],
    ['limit_login_account', 'off', null],
    ['cleanup_interval_s', '0', null],
    ['cleanup_interval_s', 'off', null],
    ['cleanup_interval_s', '10', 10],
    ['log_format', 'text', 'text'],
    ['database_url', 'postgresql:///app?host=/run/postgresql', 'postgresql:///app?host=/run/postgresql'],
  ]
  it.each(accepted)('%s takes %s', (name, text, value) => {
    const env = { CELLKEEP_COOKIE_KEYS: key, [`CELLKEEP_${name.toUpperCase()}`]: text }
    const { config, sources } = parse(env)
    expect(config[name]).toEqual(value)
    expect(sources[name]).toBe('env')
    const shown = written(settings[name].kind as AnySetting['kind'], value)
    expect(parse({ ...env, [`CELLKEEP_${name.toUpperCase()}`]: shown }).config[name]).toEqual(value)
  })

  const refused: [name: keyof Config, texts: string[]][] = [
    ['env', ['test', 'Production', ' production']],
    ['host', ['[::1]', '127.1', '999.1.1.1', 'a..b', 'a b', 'http://x', '*']],
    ['port', ['-1', '65536', '4040.0', '4e3', '0x10', ' 80', '080', 'http', '1_000']],
    [
      'database_url',
      [
        'mysql://x/y',
        'file:/x',
        'postgres:/x',
        'POSTGRES://x',
        'postgres://u:p#s@h/d:1:2',
        'off',
        'postgres://u:%ff@h/d',
        'postgres://h/%e9',
      ],
    ],
    ['postgres_bin', ['/nonexistent/bin', '.']],
    [
      'smtp_url',
      [
        'http://mail',
        'smtp://',
        'smtp://u:100%off@mail',
        'smtp://u%zz@mail',
        'smtp://u:%ff@mail',
        'smtp://u:1#2@mail',
        'smtp://u:1?2@mail',
        'smtp://münchen.example',
        'smtp://ma%20il.example',
        'smtp://mail.example:0',
      ],
    ],
    ['database_pool_max', ['1', '201']],
    ['statement_timeout_ms', ['99', '30001']],
    ['cookie_keys', ['x'.repeat(31), `${key},${key}`, ',,', `${key},${'y'.repeat(31)}`]],
    ['cookie_secure', ['TRUE', '1', 'yes', 'off']],
    [
      'allowed_origins',
      [',', 'https://a.example/', 'a.example', '*', 'https://a.example,https://b.example/path'],
    ],
    ['trusted_proxies', ['10.0.0.1/8', '10.0.0.0/33', '10.0.0.0/a', 'proxy.example', '[::1]']],
    ['rpc_path', ['api', '/api/', '/API', '/', '//a', '/a.json', '/a/../b']],
    ['max_sessions', ['0', '1001', 'null', 'OFF']],
    ['login_fail_floor_ms', ['-2', '10001']],
    ['argon2', ['19456,2', '19456,2,1,1', '7,1,1', '4194305,2,1', '19456,0,1', '512,2,65']],
    ['limit_login_ip', ['5', '0/900', '5/0', '1000001/900', '5/86401', '5/900s', '5 / 900']],
    ['cleanup_interval_s', ['9', '86401']],
    ['log_level', ['trace']],
    ['limit_store', ['redis', 'Postgres']],
  ]
  it.each(refused)('%s refuses with name and rule', (name, texts) => {
    const variable = `CELLKEEP_${name.toUpperCase()}`
    for (const text of texts) {
      // Development mode and given keys avoid problems from rules across settings.
      const found = problems({ CELLKEEP_ENV: 'development', CELLKEEP_COOKIE_KEYS: key, [variable]: text })
      expect(found, text).toHaveLength(1)
      expect(found[0]).toMatch(new RegExp(`^${variable} (entry \\d )?must (be|have|not have) \\S.*\\w{3}`))
    }
  })

  it('a service link as port is refused with a hint', () => {
    expect(problems({ CELLKEEP_PORT: 'tcp://10.0.0.1:80' })[0]).toMatch(/enableServiceLinks/)
  })

  it('entries of a list are named by their position', () => {
    expect(problems({ CELLKEEP_TRUSTED_PROXIES: '::1,10.0.0.1/8,x' })).toEqual([
      'CELLKEEP_TRUSTED_PROXIES entry 2 must not have host bits set below its prefix length; ' +
        'entry 3 must be an IP address or a CIDR network',
    ])
  })

  it('an empty string is unset', () => {
    const env = Object.fromEntries(keys.map((name) => [`CELLKEEP_${name.toUpperCase()}`, '']))
    expect(parse({ ...env, CELLKEEP_NO_SUCH: '', CELLKEEP_COOKIE_KEYS_FILE: '' })).toEqual(parse({}))
  })

  it('any text gives a value or a ConfigError that does not repeat it', () => {
    fc.assert(
      fc.property(fc.constantFrom(...keys), fc.string({ unit: anyCharacter }), (name, text) => {
        const found = problems({ [`CELLKEEP_${name.toUpperCase()}`]: text })
        for (const problem of found) {
          expect(problem).toMatch(/^CELLKEEP_/)
          if (text.length > 4) expect(problem).not.toContain(text)
        }
      }),
    )
  })
})

describe('secrets', () => {
  const broken = [
    problems({ CELLKEEP_DATABASE_URL: `mysql://${key}` }),
    problems({ CELLKEEP_COOKIE_KEYS: 'short-secret,short-secret' }),
    problems({ CELLKEEP_DATABASE_URL: url, CELLKEEP_HOST: '0.0.0.0' }),
    problems({ CELLKEEP_COOKIE_KEYS_FILE: key }),
  ]
  it('never appear in a message', () => {
    for (const found of broken) {
      expect(found.length).toBeGreaterThan(0)
      for (const problem of found) expect(problem).not.toMatch(/hunter2|short-secret|k{20}/)
    }
  })

  it.each([
    ['with a newline', `${key}\n`],
    ['without one', key],
    ['of Windows', `${key}\r\n`],
  ])('come from a file %s', (_, content) => {
    const { config, sources } = parse({ CELLKEEP_COOKIE_KEYS_FILE: secretFile('keys', content) })
    expect(config.cookie_keys).toEqual([key])
    expect(sources.cookie_keys).toBe('env_file')
  })

  it('only the last newline of the file is cut', () => {
    const found = problems({ CELLKEEP_DATABASE_URL_FILE: secretFile('url', `${url}\n`) })
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(/^CELLKEEP_COOKIE_KEYS is required/)
  })

  it('given both ways, missing or empty are refused', () => {
    const both = { CELLKEEP_COOKIE_KEYS: key, CELLKEEP_COOKIE_KEYS_FILE: secretFile('keys', key) }
    expect(problems(both)).toEqual([
      'CELLKEEP_COOKIE_KEYS and CELLKEEP_COOKIE_KEYS_FILE must not both be set',
    ])
    expect(problems({ CELLKEEP_COOKIE_KEYS_FILE: 'nothing-here' })[0]).toMatch(/cannot be read \(ENOENT\)/)
    expect(problems({ CELLKEEP_COOKIE_KEYS_FILE: secretFile('empty', '\n') })[0]).toMatch(/empty file/)
  })

  it('are all that may come from a file', () => {
    const { config, warnings } = parse({ CELLKEEP_PORT_FILE: secretFile('port', '1') })
    expect(config.port).toBe(4040)
    expect(warnings).toEqual(['CELLKEEP_PORT_FILE is not a setting; only secrets may come from a file'])
  })
})
