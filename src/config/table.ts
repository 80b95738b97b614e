import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { getHeapStatistics } from 'node:v8'
import { checkNetwork, isLoopbackHost } from './ip.ts'
import {
  argon2Cost,
  type Broken,
  checkCookieKeys,
  databaseUrl,
  each,
  flag,
  hostName,
  limit,
  list,
  matching,
  oneOf,
  orOff,
  orUnset,
  orZero,
  path,
  port,
  whole,
} from './kinds.ts'
import { checkOriginPattern } from './origins.ts'
import { setting } from './setting.ts'

/** A part of the memory that Node may use, within bounds. */
const heapShare = (part: number, least: number): number =>
  Math.min(268_435_456, Math.max(least, Math.floor(getHeapStatistics().heap_size_limit / part)))

/**
 * Every setting (contract 1, section 16), in the order of the docs. The key is the name in the config file
 * and the library options; the environment says `CELLKEEP_` and the key in upper case.
 */
const serving = {
  env: setting(oneOf('production', 'development'), {
    default: 'production',
    doc: 'Development adds the debug header and permits weaker password hashing.',
  }),
  host: setting(hostName(), {
    default: '127.0.0.1',
    doc: 'Where the server listens; `0.0.0.0` or `::` for everywhere.',
  }),
  port: setting(port(), { default: 4040, doc: 'TCP port; 0 takes a free one.' }),
  config: setting(orUnset(path()), {
    default: null,
    shown: '`cellkeep.config.{ts,mjs,js,json}` in the working directory, if present',
    doc: 'The config file. Environment only: the file cannot name itself.',
  }),
  data_dir: setting(path(), {
    default: '.cellkeep',
    doc: 'Everything local: the embedded database, `cookie_keys`, `bootstrap_token`.',
  }),
  body_limit: setting(whole(65_536, 16_777_216, 'bytes'), {
    default: 1_048_576,
    doc: 'Largest request body.',
  }),
  body_limit_anonymous: setting(whole(4096, 16_777_216, 'bytes'), {
    default: 65_536,
    doc: 'Largest request body without a valid credential, sign-in included; never more than `body_limit`.',
  }),
  arriving_max: setting(whole(16_777_216, 17_179_869_184, 'bytes'), {
    default: () => heapShare(16, 33_554_432),
    shown: 'a sixteenth of the heap limit of Node, 32 to 256 MiB',
    doc: 'Memory for request bodies that are still arriving; past it the oldest is answered 503 `busy`.',
  }),
  unsent_max: setting(whole(16_777_216, 17_179_869_184, 'bytes'), {
    default: () => heapShare(8, 67_108_864),
    shown: 'an eighth of the heap limit of Node, 64 to 256 MiB',
    doc: 'Memory for answers that clients have not read; past it, large answers of reads are 503 `busy`.',
  }),
  answer_stall_ms: setting(whole(1000, 600_000), {
    default: 10_000,
    doc: 'A connection is cut when its client has read nothing of an answer for so long.',
  }),
  request_timeout_ms: setting(whole(1000, 600_000), {
    default: 30_000,
    doc: 'Time for one whole request to arrive.',
  }),
  shutdown_delay_ms: setting(whole(0, 60_000), {
    default: 0,
    doc: 'On SIGTERM: how long readiness already says no while requests are still served.',
  }),
  shutdown_timeout_ms: setting(whole(1000, 300_000), {
    default: 10_000,
    doc: 'Bound of the shutdown after that; then everything is cut.',
  }),
  log_level: setting(oneOf('debug', 'info', 'warn', 'error', 'silent'), {
    default: 'info',
    doc: 'Least level logged.',
  }),
  log_format: setting(oneOf('json', 'text'), {
    default: 'json',
    doc: 'JSON lines for machines, text for eyes.',
  }),
}

const database = {
  database_url: setting(orUnset(databaseUrl()), {
    default: null,
    shown: 'an embedded PostgreSQL under `<data dir>/db`',
    secret: true,
    doc: 'A PostgreSQL 15 to 18 of your own.',
  }),
  postgres_bin: setting(orUnset(path('a directory with postgres and initdb')), {
    default: null,
    shown: 'the bundled binaries, else those found on the machine (15 or newer)',
    doc: 'PostgreSQL binaries for the embedded database.',
  }),
  disk_reserve: setting(orOff(whole(1_048_576, 1_000_000_000_000, 'bytes')), {
    default: 268_435_456,
    doc: 'Room on the disk of the embedded database below which no content is stored, at most a twentieth of the disk; warned of at four times as much.',
  }),
  postgres_user: setting(orUnset(matching('the name of a user', /^[A-Za-z_][\w.-]{0,63}$/)), {
    default: null,
    shown: 'the owner of `<data dir>/db`, else `cellkeep`, `postgres` or `nobody`',
    doc: 'Whom a root process runs the embedded database as.',
  }),
  database_pool_max: setting(whole(2, 200), { default: 10, doc: 'Most pooled connections of one process.' }),
  max_caller_connections: setting(orOff(whole(1, 200)), {
    default: ({ database_pool_max }) => Math.max(2, Math.floor(database_pool_max * 0.8)),
    shown: 'four fifths of the pool, at least 2',
    doc: 'Pooled connections that one account, or one address without a credential, uses at once; its other calls wait their turn.',
  }),
  statement_timeout_ms: setting(whole(100, 30_000), {
    default: 10_000,
    doc: 'Time limit of one SQL statement.',
  }),
  migrate: setting(oneOf('auto', 'check'), {
    default: 'auto',
    doc: '`auto` applies pending migrations at start, `check` refuses to start with any.',
  }),
}

const browser = {
  cookie_keys: setting(
    orUnset(list('a comma list of one or more different keys, each at least 32 characters', checkCookieKeys)),
    {
      default: null,
      shown: 'embedded database: made once, kept at `<data dir>/cookie_keys`; PostgreSQL: required',
      secret: true,
      doc: 'The first key signs session cookies, all verify. `cellkeep keys generate` makes one.',
    },
  ),
  cookie_host_prefix: setting(flag(), { default: false, doc: 'Names the cookie `__Host-svc_session`.' }),
  cookie_secure: setting(flag(), {
    default: true,
    doc: 'False drops `Secure` from the cookie; only with a loopback host.',
  }),
  allowed_origins: setting(
    list('a comma list of one or more patterns like https://*.app.example:8443', each(checkOriginPattern, 1)),
    {
      default: ({ host }) => (isLoopbackHost(host) ? loopbackOrigins : []),
      shown: 'loopback host: `http://localhost:*,http://127.0.0.1:*,http://[::1]:*`; otherwise required',
      doc: 'Origins that browsers may call from. `*` is one DNS label, `:*` any port or none.',
    },
  ),
  cors: setting(flag(), { default: false, doc: 'Sends CORS headers to allowed origins.' }),
  trusted_proxies: setting(list('a comma list of IP addresses and CIDR networks', each(checkNetwork)), {
    default: [],
    shown: 'none',
    doc: 'Proxies whose `X-Forwarded-For` is believed.',
  }),
}

const mountRule = 'a path like /api/rpc of lower-case letters, digits, _ and -, without a trailing slash'
const mount = () => matching(mountRule, /^(\/[a-z0-9_-]+)+$/)

const features = {
  rpc_path: setting(mount(), { default: '/api/rpc', doc: 'Path of JSON-RPC.' }),
  account_path: setting(mount(), { default: '/api/account', doc: 'Prefix of the account routes.' }),
  ws_path: setting(mount(), { default: '/api/ws', doc: 'Path of the WebSocket.' }),
  audit_stream_path: setting(mount(), {
    default: ({ account_path }) => `${account_path}/audit/stream`,
    shown: '`<account path>/audit/stream`',
    doc: 'Path of the audit stream.',
  }),
  ws: setting(flag(), { default: true, doc: 'The WebSocket.' }),
  audit_stream: setting(flag(), { default: true, library: false, doc: 'The audit stream.' }),
  app_settings: setting(flag(), {
    default: true,
    library: false,
    doc: 'The methods `app_settings_*`.',
  }),
  bootstrap: setting(oneOf('live', 'disabled'), {
    default: 'live',
    library: 'disabled',
    doc: 'The route that makes the first account from the token file.',
  }),
  bootstrap_token_path: setting(path(), {
    default: ({ data_dir }) => join(data_dir, 'bootstrap_token'),
    shown: '`<data dir>/bootstrap_token`',
    doc: 'The token file of the bootstrap.',
  }),
  daemon_token_file: setting(orUnset(path()), {
    default: null,
    shown: 'unset',
    doc: 'A file of mode 0600 with the token that acts as the keeper; `cellkeep daemon-token rotate` writes it.',
  }),
  signup: setting(flag(), { default: true, doc: 'The signup route.' }),
}

const perAccount = () => orOff(whole(1, 1000))

const accounts = {
  max_sessions: setting(perAccount(), {
    default: 5,
    doc: 'Sessions per account; the oldest ends for a new one.',
  }),
  max_tokens: setting(perAccount(), { default: 10, doc: 'API tokens per account, likewise.' }),
  max_actors: setting(perAccount(), { default: 50, doc: 'Actors per account.' }),
  max_cell_edges: setting(orOff(whole(1, 1_000_000)), {
    default: 10_000,
    doc: 'Fields of one cell, and items of one cell.',
  }),
  max_account_cells: setting(orOff(whole(1, 1_000_000_000)), {
    default: 1_000_000,
    doc: 'Cells that an account stores, deleted ones included; not for admins.',
  }),
  max_account_bytes: setting(orOff(whole(1, 1_000_000_000_000_000, 'bytes')), {
    default: 10_737_418_240,
    doc: 'Bytes of data in these cells; not for admins.',
  }),
  login_fail_floor_ms: setting(whole(-1, 10_000), {
    default: 250,
    doc: 'Least time of a failed login; 0 or negative: no floor.',
  }),
  login_fail_jitter_ms: setting(whole(0, 10_000), { default: 25, doc: 'Random time on top of it; 0: none.' }),
  hash_concurrency: setting(whole(1, 64), {
    default: () => Math.min(4, availableParallelism()),
    shown: 'CPU count, at most 4',
    doc: 'Password hashes computed at a time, each on a thread that gives way to requests.',
  }),
  hash_queue_max: setting(whole(0, 10_000), {
    default: 64,
    doc: 'Hashes that may wait; more answer 503 `busy`.',
  }),
  argon2: setting(argon2Cost(), {
    default: { memoryCost: 19_456, timeCost: 2, parallelism: 1 },
    doc: 'Argon2id cost; none of the three below the default except in development.',
  }),
  cleanup_interval_s: setting(orZero(orOff(whole(10, 86_400))), {
    default: 600,
    library: null,
    doc: 'How often expired rows are removed.',
  }),
  audit_retention_days: setting(orOff(whole(1, 36_500)), {
    default: null,
    doc: 'Age at which audit rows go.',
  }),
  cell_tombstone_retention_days: setting(orOff(whole(1, 36_500)), {
    default: null,
    doc: 'Age at which deleted cells go for good.',
  }),
}

const allowance = (max: number, seconds: number, doc: string) =>
  setting(orOff(limit()), { default: { max, seconds }, doc })

const limits = {
  limit_store: setting(oneOf('memory', 'postgres'), {
    default: 'memory',
    doc: 'Where limiters count: `memory` of each process, or `postgres` for all nodes together.',
  }),
  limit_login_ip: allowance(
    30,
    900,
    'Failed logins per IP; an IPv6 /48 has ten times that, as for every limit per IP.',
  ),
  limit_login_account: allowance(
    10,
    1800,
    'Failed logins per name tried, and wrong current passwords per account. An address that signed in to the account in the last 90 days counts by itself.',
  ),
  limit_bootstrap_ip: allowance(5, 900, 'Failed bootstraps per IP.'),
  limit_signup_ip: allowance(5, 900, 'Refused signups per IP.'),
  limit_signup_username: allowance(10, 1800, 'Refused signups per username.'),
  limit_signup_open_ip: allowance(10, 3600, 'Successful open signups per IP.'),
  limit_lookup: allowance(1200, 900, 'Actor lookups and searches per account.'),
  limit_account: allowance(1200, 900, 'Token creation and account deletion per account.'),
  limit_admin_write: allowance(1200, 900, 'Administrative changes per account.'),
  limit_role_revoke: allowance(1200, 900, 'Role grant revocations per account.'),
  limit_role_write: allowance(1200, 900, 'Offers and role assignments per account.'),
  limit_admin_read: allowance(1200, 900, 'Administrative lists per account.'),
  limit_cell_create: allowance(1200, 900, 'Cells created per account.'),
  limit_cell_write: allowance(6000, 900, 'Changes to cells, edges and grants per account.'),
  limit_cell_clone: allowance(
    20_000,
    900,
    'Size of clones per account: each cell counts 1, and so do 16 KiB of data and 32 edges.',
  ),
  limit_cell_read: allowance(600, 900, 'Anonymous cell reads per IP.'),
  max_connections: setting(whole(1, 1_000_000), {
    default: 10_000,
    doc: 'Sockets plus streams.',
  }),
  ws_per_account: setting(whole(1, 10_000), { default: 50, doc: 'Sockets per account.' }),
  sse_per_credential: setting(whole(1, 1000), { default: 10, doc: 'Streams per credential.' }),
}

/** The sections of the docs. */
export const groups = [
  { title: 'Server', settings: serving },
  { title: 'Database', settings: database },
  { title: 'Cookies, origins, proxies', settings: browser },
  { title: 'Paths and features', settings: features },
  { title: 'Accounts, passwords, cleanup', settings: accounts },
  { title: 'Limits', settings: limits },
] as const

export const settings = { ...serving, ...database, ...browser, ...features, ...accounts, ...limits }

export type Key = keyof typeof settings
export const keys = Object.keys(settings) as Key[]

/** All settings by key, parsed. Null is `off`, or unset where nothing stands for the setting. */
export type Config = {
  readonly [K in Key]: Exclude<ReturnType<(typeof settings)[K]['kind']['parse']>, Broken>
}

/** What a config file or `createService` may say of settings; `config` belongs to the environment alone. */
export type SettingOptions = {
  readonly [K in Exclude<Key, 'config'>]?: (typeof settings)[K]['kind']['option']
}

const loopbackOrigins = ['http://localhost:*', 'http://127.0.0.1:*', 'http://[::1]:*']
