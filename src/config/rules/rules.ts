import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isLoopbackHost } from '../ip.ts'
import { type Config, type Key, settings } from '../table.ts'
import type { RuleContext } from './context.ts'
import { brokenMail } from './mail.ts'
import { brokenPasskeys } from './passkeys.ts'

/** Checks the rules that concern several settings or the machine; each string is one problem. */
export function brokenRules(config: Config, context: RuleContext): string[] {
  const { label, isGiven, isBroken, serves } = context
  const has = (key: Key): boolean => config[key] !== null || isBroken(key)
  const problems: string[] = []
  const loopback = isLoopbackHost(config.host)

  if (serves && !loopback && !isGiven('allowed_origins')) {
    problems.push(
      `${label('allowed_origins')} is required when ${label('host')} is not a loopback address: ` +
        'list the origins that browsers use, like https://app.example',
    )
  }
  if (serves && has('database_url') && !has('cookie_keys')) {
    problems.push(
      `${label('cookie_keys')} is required with ${label('database_url')}: ` +
        'make a key with `cellkeep keys generate` and give the same to every node',
    )
  }
  if (config.database_replica_urls.length > 0 && !has('database_url')) {
    problems.push(`${label('database_replica_urls')} needs ${label('database_url')}: a database of your own`)
  }
  if (config.metrics_port !== null && config.metrics_port === config.port) {
    problems.push(`${label('metrics_port')} must not be ${label('port')}`)
  }
  if (!config.cookie_secure && !loopback) {
    problems.push(`${label('cookie_secure')} may be false only when ${label('host')} is a loopback address`)
  }
  if (!config.cookie_secure && config.cookie_host_prefix) {
    problems.push(`${label('cookie_host_prefix')} may not be true when ${label('cookie_secure')} is false`)
  }
  if (config.env !== 'development' && isWeakerHash(config)) {
    problems.push(`${label('argon2')} may be below its default only when ${label('env')} is development`)
  }
  if (config.postgres_bin !== null && !holdsPostgres(config.postgres_bin)) {
    problems.push(`${label('postgres_bin')} must be ${settings.postgres_bin.kind.rule}`)
  }
  const { password_blocklist: blocklist } = config
  if (blocklist !== null && blocklist !== 'builtin' && !isReadable(blocklist, 'file')) {
    problems.push(`${label('password_blocklist')} must be ${settings.password_blocklist.kind.rule}`)
  }
  if (config.mail_templates !== null && !isReadable(config.mail_templates, 'directory')) {
    problems.push(`${label('mail_templates')} must be ${settings.mail_templates.kind.rule}`)
  }
  return [
    ...problems,
    ...collidingMounts(config, context),
    ...brokenMail(config, context),
    ...brokenPasskeys(config, context),
  ]
}

/** Startup warnings for IP limiters that are off. */
export function openIpLimiters(config: Config, label: (key: Key) => string): string[] {
  return ipLimiters
    .filter((key) => config[key] === null)
    .map((key) => `${label(key)} is off: attempts from one address are not limited`)
}

const ipLimiters = [
  'limit_login_ip',
  'limit_signup_ip',
  'limit_signup_open_ip',
  'limit_bootstrap_ip',
  'limit_recover_ip',
  'limit_ticket_ip',
  'limit_flow_ip',
  'limit_cell_read',
  'limit_discovery',
] as const

const mounts = ['rpc_path', 'account_path', 'ws_path', 'audit_stream_path'] as const
const accountRoutes = [
  ...['login', 'logout', 'password', 'verify', 'status', 'bootstrap', 'signup'],
  ...['recover', 'ticket', 'reset', 'email_confirm', 'options', 'reauthenticate', 'second_factor'],
  ...['passkey_begin', 'passkey_finish', 'oidc_start', 'oidc_finish'],
]

/** The pages for people that are outside the console. */
export const pagePaths = ['/', '/setup', '/sign-in', '/sign-up', '/invite']

/** Paths are matched exactly, so two mounts collide only if they answer the same path. */
function collidingMounts(config: Config, { label, isGiven }: RuleContext): string[] {
  const problems: string[] = []
  const own = new Map<string, Key>()
  for (const key of mounts) {
    const path = config[key]
    const owner = own.get(path)
    if (owner) problems.push(`${label(key)} must not be the same path as ${label(owner)}`)
    else own.set(path, key)
  }
  const trees = [
    ...['/health', '/ready'],
    ...(config.console === 'on' ? ['/admin'] : []),
    ...(config.pages ? ['/pages'] : []),
  ]
  const routes = accountRoutes.map((route) => `${config.account_path}/${route}`)
  for (const key of mounts) {
    if (key !== 'account_path' && routes.includes(config[key])) {
      problems.push(`${label(key)} must not be the path of a route under ${label('account_path')}`)
    }
    // The default stream path is under the account path, which is checked itself.
    if (key === 'audit_stream_path' && !isGiven(key)) continue
    const answers = key === 'account_path' ? [config[key], ...routes] : [config[key]]
    const fixed = trees.find((path) => answers.some((answer) => isFixed(answer, path)))
    const page = config.pages && pagePaths.find((path) => answers.includes(path))
    if (fixed)
      problems.push(`${label(key)} must not be ${fixed} or a path below it, where the server itself answers`)
    else if (page) problems.push(`${label(key)} must not be ${page}, which is a page for people`)
  }
  return problems
}

const isFixed = (path: string, fixed: string): boolean => path === fixed || path.startsWith(`${fixed}/`)

function isWeakerHash({ argon2 }: Config): boolean {
  const defaults = settings.argon2.default as Config['argon2']
  return (
    argon2.memoryCost < defaults.memoryCost ||
    argon2.timeCost < defaults.timeCost ||
    argon2.parallelism < defaults.parallelism
  )
}

const holdsPostgres = (directory: string): boolean =>
  ['postgres', 'initdb'].every((name) => existsSync(join(directory, name)))

function isReadable(path: string, kind: 'file' | 'directory'): boolean {
  try {
    accessSync(path, constants.R_OK)
    const found = statSync(path)
    return kind === 'file' ? found.isFile() : found.isDirectory()
  } catch {
    return false
  }
}
