import { existsSync, realpathSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isPlainObject } from '../wire/input.ts'
import { ConfigError, type ConfigFile, type ConfigOptions, type ParsedConfig, parseConfig } from './config.ts'
import { type Environment, envName } from './reading.ts'

/** The configuration of a process: loads the config file and parses all sources. Throws ConfigError. */
export async function loadConfig(input: {
  env: Environment
  cwd: string
  mode: 'server' | 'command'
}): Promise<ParsedConfig> {
  const file = await loadConfigFile(input)
  const parsed = parseConfig({ ...input, file })
  const other = file && otherCopy(file.path)
  return other ? { ...parsed, warnings: [...parsed.warnings, other] } : parsed
}

/**
 * A warning if the file imports another copy of this package, as happens beside a global installation: its classes
 * differ.
 */
function otherCopy(path: string): string | undefined {
  const own = realpathSync(fileURLToPath(new URL('../..', import.meta.url)))
  let found: string
  try {
    found = dirname(realpathSync(createRequire(path).resolve('cellkeep/package.json')))
  } catch {
    return undefined
  }
  if (found === own) return undefined
  return `${path} imports the cellkeep in ${found}, but the one in ${own} is running; start bin/cellkeep.js of the former instead`
}

/**
 * The file that `CELLKEEP_CONFIG` names, else `cellkeep.config.{ts,mjs,js,json}` in the working directory;
 * undefined if there is none. Throws ConfigError if it does not load or does not export an object.
 */
export async function loadConfigFile(input: {
  env: Environment
  cwd: string
}): Promise<ConfigFile | undefined> {
  const path = findFile(input)
  if (path === undefined) return undefined
  const options = extname(path) === '.json' ? await readJson(path) : (await importModule(path)).default
  if (!isPlainObject(options)) throw new ConfigError([`${path} must export an object as its default`])
  return { path, options }
}

/**
 * Types a config file: `export default defineConfig({ port: 8080 })`. The result keeps the types of its `actions`, so
 * that `createService(config)` knows them.
 */
export const defineConfig = <A extends Record<string, unknown> = Record<never, never>>(
  options: ConfigOptions & { actions?: A | undefined },
): Omit<ConfigOptions, 'actions'> & { actions?: A | undefined } => options

const named = ['ts', 'mjs', 'js', 'json'].map((extension) => `cellkeep.config.${extension}`)
const loadable = new Set(['.ts', '.mts', '.mjs', '.js', '.cjs', '.json'])

function findFile({ env, cwd }: { env: Environment; cwd: string }): string | undefined {
  const asked = env[envName('config')]
  if (!asked) return named.map((name) => join(cwd, name)).find((path) => existsSync(path))
  const path = resolve(cwd, asked)
  if (!existsSync(path)) throw new ConfigError([`${envName('config')} names ${path}, which does not exist`])
  if (!loadable.has(extname(path))) {
    throw new ConfigError([`${envName('config')} must name a file that ends in ${[...loadable].join(', ')}`])
  }
  return path
}

async function readJson(path: string): Promise<unknown> {
  const text = await readFile(path, 'utf8').catch((error) => {
    throw notLoaded(path, error.code, error)
  })
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch (error) {
    // Omits message and cause: the parser quotes the text around the error, which may be a secret.
    const [place] = /\(line \d+ column \d+\)/.exec(String(error)) ?? []
    throw notLoaded(path, place ? `not valid JSON ${place}` : 'not valid JSON')
  }
}

/** Returns the module, not its default export: an async function would await one that is a promise. */
async function importModule(path: string): Promise<{ default?: unknown }> {
  try {
    return await import(pathToFileURL(path).href)
  } catch (error) {
    const [line] = String(error).split('\n')
    throw notLoaded(path, `${line}${remedyOf(String(error))}`, error)
  }
}

function remedyOf(error: string): string {
  // A package.json from `npm init` says `commonjs` or nothing.
  if (/outside a module|Unexpected token 'export'/.test(error))
    return '; set "type": "module" in the package.json beside it'
  // Node looks for it beside the file, not where `cellkeep` itself is installed.
  const [, name] = /Cannot find package '([^']+)'/.exec(error) ?? []
  return name === undefined
    ? ''
    : `; run \`npm install ${name}\` in the directory of the file that imports it`
}

function notLoaded(path: string, why: string, cause?: unknown): ConfigError {
  const error = new ConfigError([`${path} cannot be loaded: ${why}`])
  error.cause = cause
  return error
}
