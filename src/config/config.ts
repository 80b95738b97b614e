import { resolve } from 'node:path'
import { StartError } from '../errors.ts'
import type { DeclarationOptions } from './declarations.ts'
import { type OidcProvider, readProviders } from './oidc.ts'
import {
  type Environment,
  envName,
  type Reading,
  readEnvironment,
  readOptions,
  type Source,
  startReading,
} from './reading.ts'
import type { RuleContext } from './rules/context.ts'
import { unreachableLinks } from './rules/mail.ts'
import { brokenRules, openIpLimiters } from './rules/rules.ts'
import { missingSecondFactor, unregisteredRoles } from './second-factor.ts'
import type { AnySetting, Known } from './setting.ts'
import { type Config, type Key, keys, type SettingOptions, settings } from './table.ts'

export type { Config, Key } from './table.ts'

/** The options of `defineConfig`, a config file and `createService`: any setting, and what only code can declare. */
export type ConfigOptions = SettingOptions & DeclarationOptions

/** A loaded config file; `parseConfig` checks its keys. */
export type ConfigFile = { path: string; options: Record<string, unknown> }

export type ParsedConfig = {
  readonly config: Config
  readonly sources: Readonly<Record<Key, Source>>
  /** Sentences for the startup log. */
  readonly warnings: readonly string[]
  /** Roles, hooks, methods and the like from the config file or the options; only their containers are checked. */
  readonly declarations: DeclarationOptions & { readonly oidc?: readonly OidcProvider[] }
}

/** All problems of a configuration at once: names and rules, never values. Exit code 78. */
export class ConfigError extends StartError {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    const lines = problems.map((problem) => `  ${problem}`)
    super('configuration', ['The configuration is not valid:', ...lines].join('\n'), 78)
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/**
 * The effective settings: environment over config file over defaults. The mode `command` is for processes that
 * do not serve; they do not need the settings that only a server requires. Throws ConfigError.
 */
export function parseConfig(input: {
  env: Environment
  file?: ConfigFile | undefined
  cwd: string
  mode: 'server' | 'command'
}): ParsedConfig {
  const { env, file, cwd } = input
  const reading = startReading(cwd)
  if (file) readOptions(reading, file.options, 'file', (key) => `${key} (in ${file.path})`)
  readEnvironment(reading, env)
  return finish(reading, {
    library: false,
    serves: input.mode === 'server',
    name: envName,
    ...(file && { foundFile: file.path }),
  })
}

/** The settings of `createService`: options over library defaults, without the environment. Throws ConfigError. */
export function resolveOptions(options: ConfigOptions, cwd: string = process.cwd()): ParsedConfig {
  const reading = startReading(cwd)
  readOptions(reading, options, 'option', (key) => key)
  return finish(reading, { library: true, serves: true, name: (key) => key })
}

/** The same configuration with another data dir; defaults that depend on it change too. */
export function withDataDir(parsed: ParsedConfig, data_dir: string): ParsedConfig {
  const known = { ...parsed.config, data_dir }
  const { deliver } = parsed.declarations
  const moved = keys
    .filter((key) => parsed.sources[key] === 'default' && typeof settings[key].default === 'function')
    .map((key) => [key, defaultOf(settings[key] as AnySetting, false, { ...known, deliver })])
  return { ...parsed, config: { ...known, ...Object.fromEntries(moved) } }
}

type FinishOptions = { library: boolean; serves: boolean; name: (key: Key) => string; foundFile?: string }

function finish(reading: Reading, { library, serves, name, foundFile }: FinishOptions): ParsedConfig {
  const label = (key: Key): string => reading.labels.get(key) ?? name(key)
  const config = { ...effective(reading, library), ...(foundFile !== undefined && { config: foundFile }) }
  const isGiven = (key: Key): boolean => reading.sources.has(key)
  const isBroken = (key: Key): boolean => isGiven(key) && !reading.values.has(key)
  const { oidc, ...declared } = reading.declarations
  const { providers, problems: oidcProblems } = readProviders(oidc ?? [], {
    label: reading.optionLabel('oidc'),
    secrets: reading.clientSecrets,
    serves,
    isDevelopment: config.env === 'development',
    missing: missingRedirect(config, { label, isGiven, isBroken }),
  })
  const problems = [
    ...reading.problems,
    ...brokenRules(config, { label, isGiven, isBroken, serves, deliver: reading.declarations.deliver }),
    ...oidcProblems,
    ...unregisteredRoles(config, label, reading.declarations.roles),
  ]
  if (problems.length > 0) throw new ConfigError(problems)

  const atStart = [
    ...openIpLimiters(config, label),
    ...missingSecondFactor(config, label, providers),
    ...unreachableLinks(config, { label, isGiven }),
  ]
  const warnings = [...reading.warnings, ...(serves ? atStart : [])]
  const sources = Object.fromEntries(keys.map((key) => [key, reading.sources.get(key) ?? 'default']))
  const declarations = { ...declared, ...(oidc && { oidc: providers }) }
  return { config, sources: sources as Record<Key, Source>, warnings, declarations }
}

/**
 * The default is a page of the console, so a console that is switched off leaves nothing there. In the library the
 * console is off by default, and the consumer may have a page of its own at that path.
 */
function missingRedirect(
  { oidc_redirect_url, console }: Config,
  { label, isGiven, isBroken }: Pick<RuleContext, 'label' | 'isGiven' | 'isBroken'>,
) {
  if (isBroken('oidc_redirect_url')) return null
  if (oidc_redirect_url === null)
    return { setting: label('public_url'), when: 'the host is not a loopback address' }
  const isOff = isGiven('console') && console === 'off' && !isGiven('oidc_redirect_url')
  return isOff ? { setting: label('oidc_redirect_url'), when: `${label('console')} is off` } : null
}

/** A default may depend on given settings and on the defaults of earlier rows of the table. */
function effective({ values, cwd, declarations }: Reading, library: boolean): Config {
  const config: Record<string, unknown> = Object.fromEntries(values)
  for (const key of keys) {
    const known = { ...config, deliver: declarations.deliver } as Known
    if (!values.has(key)) config[key] = defaultOf(settings[key] as AnySetting, library, known)
    if (key === 'data_dir') config[key] = resolve(cwd, config[key] as string)
  }
  return config as Config
}

function defaultOf(setting: AnySetting, library: boolean, known: Known): unknown {
  if (library && setting.library !== undefined) return setting.library
  return typeof setting.default === 'function' ? setting.default(known) : setting.default
}
