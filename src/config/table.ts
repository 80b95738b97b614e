import { hostname } from 'node:os'
import { join } from 'node:path'
import { isatty } from 'node:tty'
import { getHeapStatistics } from 'node:v8'
import { z } from 'zod'
import { checkNetwork, isLoopbackHost } from './ip.ts'
import {
  entry,
  flag,
  hostName,
  keyList,
  list,
  lowerCase,
  matching,
  oneOf,
  orUnset,
  path,
  port,
  whole,
} from './kinds.ts'
import { checkOriginPattern } from './origins.ts'
import { setting } from './setting.ts'
import { database } from './table-database.ts'
import { accounts, limits } from './table-limits.ts'
import { messages } from './table-messages.ts'
import { signIn } from './table-sign-in.ts'

const nodeName = /^[a-z0-9][a-z0-9.-]{0,62}$/

/** A fraction of Node's heap limit, at least `min` and at most 256 MiB. */
const heapShare = (part: number, min: number): number =>
  Math.min(268_435_456, Math.max(min, Math.floor(getHeapStatistics().heap_size_limit / part)))

/**
 * Every setting, in the order of the docs. The key is its name in the config file and the library options; its
 * environment variable is `CELLKEEP_` and the key in upper case.
 */
const serving = {
  env: setting(oneOf('production', 'development'), {
    default: 'production',
    doc: '`development` allows weaker password hashing, `CELLKEEP_MAIL=file` and providers over http, and adds the header `X-Svc-Auth-Debug`.',
  }),
  host: setting(hostName(), {
    default: '127.0.0.1',
    doc: 'Address to listen on; `0.0.0.0` or `::` for all interfaces.',
  }),
  port: setting(port(), { default: 4040, doc: 'TCP port; 0 picks a free one.' }),
  node_name: setting(lowerCase('a name of 1 to 63 of a-z, 0-9, . and -', nodeName), {
    default: () => {
      const name = hostname()
        .toLowerCase()
        .replaceAll(/[^a-z0-9.-]/g, '-')
        .slice(0, 63)
      return nodeName.test(name) ? name : 'node'
    },
    shown: 'the host name',
    doc: 'Name of this process for operators, as `cellkeep nodes` lists it.',
  }),
  metrics_port: setting(orUnset(whole(1, 65_535)), {
    default: null,
    shown: 'no metrics',
    doc: 'Port on which `cellkeep start` answers `GET /metrics` for Prometheus; needs the package `prom-client`.',
  }),
  metrics_host: setting(hostName(), {
    default: '127.0.0.1',
    doc: 'Address on which metrics are served. They show your traffic, so let only your monitoring reach it.',
  }),
  config: setting(orUnset(path()), {
    default: null,
    shown: '`cellkeep.config.{ts,mjs,js,json}` in the working directory, if present',
    doc: 'The config file. Can only be set in the environment.',
  }),
  data_dir: setting(path(), {
    default: '.cellkeep',
    doc: 'Directory for local state: the embedded database, `cookie_keys`, `secret_keys`, `bootstrap_token`, `mail`.',
  }),
  body_limit: setting(whole(65_536, 16_777_216, 'bytes'), {
    default: 1_048_576,
    doc: 'Max size of a request body.',
  }),
  arriving_max: setting(whole(16_777_216, 17_179_869_184, 'bytes'), {
    default: () => heapShare(32, 16_777_216),
    shown: 'a thirty-second of Node’s heap limit, 16 to 256 MiB',
    doc: 'Memory for request bodies that are still arriving, and the same again for WebSocket messages. Beyond it, the oldest request is refused with 503 `busy`, or the oldest socket is cut.',
  }),
  unsent_max: setting(whole(16_777_216, 17_179_869_184, 'bytes'), {
    default: () => heapShare(32, 16_777_216),
    shown: 'a thirty-second of Node’s heap limit, 16 to 256 MiB',
    doc: 'Memory for responses that clients have not read yet. Beyond it, large responses to reads are replaced by 503 `busy`.',
  }),
  answer_stall_ms: setting(whole(1000, 600_000), {
    default: 10_000,
    doc: 'A connection is cut if its client reads nothing of a response for this long.',
  }),
  request_timeout_ms: setting(whole(1000, 600_000), {
    default: 30_000,
    doc: 'Max time for a whole request to arrive.',
  }),
  shutdown_delay_ms: setting(whole(0, 60_000), {
    default: 0,
    doc: 'How long requests are still served after a stop signal, while readiness already fails.',
  }),
  serving_grace_s: setting(whole(0, 3600), {
    default: 60,
    doc: 'How long, in seconds, `/health/serving` keeps answering 200 while the database is away or takes no writes.',
  }),
  shutdown_timeout_ms: setting(whole(1000, 300_000), {
    default: 10_000,
    doc: 'Max time for the shutdown after `CELLKEEP_SHUTDOWN_DELAY_MS`; then all connections are cut.',
  }),
  log_level: setting(oneOf('debug', 'info', 'warn', 'error', 'silent'), {
    default: 'info',
    doc: 'Lowest level that is logged.',
  }),
  log_format: setting(oneOf('json', 'text'), {
    default: () => (isatty(1) ? 'text' : 'json'),
    shown: '`text` on a terminal, otherwise `json`',
    doc: 'JSON lines for machines, text for people.',
  }),
}

const browser = {
  cookie_keys: setting(orUnset(keyList()), {
    default: null,
    shown: 'embedded database: generated once in `<data dir>/cookie_keys`; PostgreSQL: required',
    secret: true,
    doc: 'The first key signs session cookies; all keys verify them. `cellkeep keys generate` makes a key.',
  }),
  secret_keys: setting(orUnset(keyList()), {
    default: null,
    shown: 'embedded database: generated once in `<data dir>/secret_keys`; PostgreSQL: unset',
    secret: true,
    doc: 'Keys that encrypt the secrets in the database that must be readable again: TOTP secrets, and links in queued messages. The first key encrypts, all keys decrypt. Needed for TOTP and for sending messages.',
  }),
  cookie_host_prefix: setting(flag(), {
    default: false,
    doc: 'Names the session cookie `__Host-svc_session`.',
  }),
  cookie_secure: setting(flag(), {
    default: true,
    doc: '`false` omits `Secure` from the session cookie; only allowed with a loopback host.',
  }),
  allowed_origins: setting(
    list(
      'a comma-separated list of one or more patterns like https://*.app.example:8443',
      z.array(entry(checkOriginPattern)).min(1, 'must have at least one entry'),
    ),
    {
      default: ({ host }) => (isLoopbackHost(host) ? loopbackOrigins : []),
      shown: 'loopback host: `http://localhost:*,http://127.0.0.1:*,http://[::1]:*`; otherwise required',
      doc: 'Origins that browsers may call from. `*` matches one DNS label, `:*` any port or none.',
    },
  ),
  cors: setting(flag(), { default: false, doc: 'Sends CORS headers to allowed origins.' }),
  trusted_proxies: setting(
    list('a comma-separated list of IP addresses and CIDR networks', z.array(entry(checkNetwork))),
    {
      default: [],
      shown: 'none',
      doc: 'Proxies whose `X-Forwarded-For` and `traceparent` are trusted.',
    },
  ),
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
  console: setting(oneOf('on', 'off'), {
    default: 'on',
    library: 'off',
    doc: 'The web console at `/admin`.',
  }),
  pages: setting(flag(), {
    default: true,
    library: false,
    doc: 'The pages for people at `/`, `/setup`, `/sign-in`, `/sign-up` and `/invite`; programs get JSON at `/`.',
  }),
  home_url: setting(
    orUnset(matching('a path like /app or an https URL', /^(\/(?![/\\])|https:\/\/)[^\s"<>]*$/)),
    {
      default: null,
      shown: 'the console',
      doc: 'Where the pages send a person who has signed in.',
    },
  ),
  audit_stream: setting(flag(), { default: true, library: false, doc: 'The audit stream.' }),
  app_settings: setting(flag(), {
    default: true,
    library: false,
    doc: 'The methods `app_settings_*`.',
  }),
  openrpc: setting(oneOf('public', 'off'), {
    default: 'public',
    doc: 'The machine-readable descriptions of this service: `rpc.discover`, `/api/openrpc.json` and `/api/openapi.json`.',
  }),
  bootstrap: setting(oneOf('live', 'disabled'), {
    default: 'live',
    library: 'disabled',
    doc: 'The route that creates the first account for a caller with the bootstrap token.',
  }),
  bootstrap_token_path: setting(path(), {
    default: ({ data_dir }) => join(data_dir, 'bootstrap_token'),
    shown: '`<data dir>/bootstrap_token`',
    doc: 'The file with the bootstrap token.',
  }),
  daemon_token_file: setting(orUnset(path()), {
    default: null,
    shown: 'unset',
    doc: 'A file with mode 0600 that holds the daemon token, which acts as the keeper; `cellkeep daemon-token rotate` writes it.',
  }),
  signup: setting(flag(), { default: true, doc: 'The signup route.' }),
}

/** The sections of the docs. */
export const groups = [
  { title: 'Server', settings: serving },
  { title: 'Database', settings: database },
  { title: 'Cookies, origins, proxies', settings: browser },
  { title: 'Paths and features', settings: features },
  { title: 'Messages and links', settings: messages },
  { title: 'Signing in', settings: signIn },
  { title: 'Accounts, passwords, cleanup', settings: accounts },
  { title: 'Limits', settings: limits },
] as const

export const settings = {
  ...serving,
  ...database,
  ...browser,
  ...features,
  ...messages,
  ...signIn,
  ...accounts,
  ...limits,
}

export type Key = keyof typeof settings
export const keys = Object.keys(settings) as Key[]

/** All settings by key, parsed. Null is `off` or unset. */
export type Config = {
  readonly [K in Key]: z.output<(typeof settings)[K]['kind']['option']>
}

/** The settings that a config file or `createService` can set; `config` is for the environment only. */
export type SettingOptions = {
  readonly [K in Exclude<Key, 'config'>]?: z.input<(typeof settings)[K]['kind']['option']> | undefined
}

const loopbackOrigins = ['http://localhost:*', 'http://127.0.0.1:*', 'http://[::1]:*']
