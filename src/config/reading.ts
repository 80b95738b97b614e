import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { meant } from '../wire/closest.ts'
import { type DeclarationOptions, declarationNames, readDeclarations } from './declarations.ts'
import { Broken, read } from './kinds.ts'
import { secretVariable } from './oidc.ts'
import type { AnySetting } from './setting.ts'
import { type Key, keys, settings } from './table.ts'

export type Source = 'default' | 'env' | 'env_file' | 'file' | 'option'

export type Environment = Record<string, string | undefined>

export const envName = (key: string): string => `${prefix}${key.toUpperCase()}`

const prefix = 'CELLKEEP_'

/** Variables of commands that call a server; they are not settings. */
const forCommands = ['CELLKEEP_URL', 'CELLKEEP_TOKEN']

/** What the sources read so far say; a later source overrides an earlier one. */
export type Reading = {
  cwd: string
  values: Map<Key, unknown>
  sources: Map<Key, Source>
  labels: Map<Key, string>
  declarations: DeclarationOptions
  /** Names an option in problems. */
  optionLabel(key: string): string
  problems: string[]
  warnings: string[]
  /** Secrets of providers, by the name of their variable. */
  clientSecrets: Map<string, string | Broken>
}

export const startReading = (cwd: string): Reading => ({
  cwd,
  values: new Map(),
  sources: new Map(),
  labels: new Map(),
  declarations: {},
  optionLabel: (key) => key,
  problems: [],
  warnings: [],
  clientSecrets: new Map(),
})

function take(reading: Reading, key: Key, source: Source, label: string, value: unknown): void {
  // A broken value counts as given, so that it is not reported as missing too.
  reading.sources.set(key, source)
  reading.labels.set(key, label)
  if (value instanceof Broken) reading.problems.push(`${label} ${value.rule}`)
  else reading.values.set(key, value)
}

function readKey({ cwd }: Reading, key: Key, form: 'text' | 'option', given: unknown): unknown {
  const { kind } = settings[key] as AnySetting
  const value = read(kind.rule, kind[form], given)
  return kind.isPath && typeof value === 'string' ? resolve(cwd, value) : value
}

export function readOptions(
  reading: Reading,
  options: Readonly<Record<string, unknown>>,
  source: 'file' | 'option',
  label: (key: string) => string,
): void {
  const { declarations, problems, rest } = readDeclarations(options, label)
  reading.declarations = declarations
  reading.optionLabel = label
  reading.problems.push(...problems)
  for (const [key, value] of Object.entries(rest)) {
    if (value === undefined) continue
    if (key === 'config')
      reading.problems.push(`${label(key)} can be set in the environment only: set ${envName(key)}`)
    else if (isKey(key)) take(reading, key, source, label(key), readKey(reading, key, 'option', value))
    else reading.problems.push(`${label(key)} is not a setting${meant(key, [...keys, ...declarationNames])}`)
  }
}

export function readEnvironment(reading: Reading, env: Environment): void {
  for (const key of keys) {
    const { secret } = settings[key] as AnySetting
    const name = envName(key)
    const text = env[name]
    const file = secret && env[`${name}_FILE`]
    if (file && text) {
      take(reading, key, 'env', name, new Broken(`and ${name}_FILE must not both be set`))
    } else if (file) {
      const content = secretFrom(resolve(reading.cwd, file))
      const value = content instanceof Broken ? content : readKey(reading, key, 'text', content)
      take(reading, key, 'env_file', `${name}_FILE`, value)
    } else if (text) {
      take(reading, key, 'env', name, readKey(reading, key, 'text', text))
    }
  }
  const names = keys.map(envName)
  const secrets = keys.filter((key) => 'secret' in settings[key]).map((key) => `${envName(key)}_FILE`)
  const known = new Set([...names, ...secrets, ...forCommands])
  for (const name of Object.keys(env)) {
    if (!name.startsWith(prefix) || known.has(name) || !env[name]) continue
    const provider = secretVariable.exec(name.replace(/_FILE$/, ''))
    if (provider) {
      readClientSecret(reading, env, provider[0])
      continue
    }
    const isFile = names.includes(name.replace(/_FILE$/, ''))
    const hint = isFile ? '; only secrets may come from a file' : meant(name, names)
    reading.warnings.push(`${name} is not a setting${hint}`)
  }
}

function readClientSecret({ cwd, clientSecrets, problems }: Reading, env: Environment, name: string): void {
  if (clientSecrets.has(name)) return
  const file = env[`${name}_FILE`]
  const secret = file ? secretFrom(resolve(cwd, file)) : (env[name] as string)
  if (file && env[name]) problems.push(`${name} and ${name}_FILE must not both be set`)
  else if (secret instanceof Broken) problems.push(`${name}_FILE ${secret.rule}`)
  clientSecrets.set(name, secret)
}

/** The message omits the path: it may be the secret itself, set under the wrong name. */
function secretFrom(path: string): string | Broken {
  try {
    const content = readFileSync(path, 'utf8').replace(/\r?\n$/, '')
    return content === '' ? new Broken('names an empty file') : content
  } catch (error) {
    return new Broken(`names a file that cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

const isKey = (key: string): key is Key => Object.hasOwn(settings, key)
