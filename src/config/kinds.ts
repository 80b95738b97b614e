import { isIP } from 'node:net'
import { resolve } from 'node:path'

/** The kinds of settings: how a value is written, checked and shown. */

/** A value that breaks its rule. `rule` continues the name of the setting and never contains the value. */
export class Broken {
  readonly rule: string
  constructor(rule: string) {
    this.rule = rule
  }
}

/** `T` is the type of the parsed value, `O` that of a config file or library option. */
export type Kind<T, O> = {
  /** Completes "must be …"; also the column "Values" in the docs. */
  rule: string
  /** Parses the text of a variable; never called with an empty one. */
  parse(text: string, cwd: string): T | Broken
  /** Checks an option: the value itself; lists, limits and the like also as text, written as in the environment. */
  accept(value: unknown, cwd: string): T | Broken
  /** The value as written in the environment. */
  show(value: T): string
  /** Only carries the type. */
  option?: O
}

type Read<T> = (text: string, cwd: string) => T | Broken | undefined

/** A kind that is text in every source. `read` returns undefined for a value that breaks `rule`. */
function textual<T>(rule: string, read: Read<T>, show: (value: T) => string = String): Kind<T, string> {
  const broken = new Broken(`must be ${rule}`)
  const parse = (text: string, cwd: string) => read(text, cwd) ?? broken
  return {
    rule,
    parse,
    accept: (value, cwd) => (typeof value === 'string' ? parse(value, cwd) : broken),
    show,
  }
}

/** A kind whose options are values of their own JavaScript type, not text. */
function typed<T>(rule: string, read: Read<T>, isValue: (value: unknown) => value is T): Kind<T, T> {
  return {
    ...textual(rule, read),
    accept: (value) => (isValue(value) ? value : new Broken(`must be ${rule}`)),
    option: undefined,
  }
}

export const flag = (): Kind<boolean, boolean> =>
  typed(
    'true or false',
    (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
    (value) => typeof value === 'boolean',
  )

export function whole(min: number, max: number, unit = ''): Kind<number, number> {
  const fits = (value: unknown): value is number =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max
  const read = (text: string) => {
    const number = /^-?(0|[1-9]\d*)$/.test(text) ? Number(text) : undefined
    return fits(number) ? number : undefined
  }
  return typed(`a whole number from ${min} to ${max}${unit && ` (${unit})`}`, read, fits)
}

export function port(): Kind<number, number> {
  const number = whole(0, 65535)
  const link = new Broken(
    `must be ${number.rule}; a value like tcp://… is a service link of Kubernetes: ` +
      'set enableServiceLinks: false or rename the service',
  )
  return { ...number, parse: (text, cwd) => (/^\w+:\/\//.test(text) ? link : number.parse(text, cwd)) }
}

export const oneOf = <const V extends string>(...values: V[]): Kind<V, V> => ({
  ...textual(alternatives(values), (text) => values.find((value) => value === text)),
  option: undefined,
})

/** A path, resolved against the working directory. */
export const path = (rule = 'a path'): Kind<string, string> =>
  textual(rule, (text, cwd) => (text === '' || text.includes('\0') ? undefined : resolve(cwd, text)))

export const matching = (rule: string, expression: RegExp): Kind<string, string> =>
  textual(rule, (text) => (expression.test(text) ? text : undefined))

export const hostName = (): Kind<string, string> =>
  textual('an IP address (without brackets) or a host name', (text) => {
    if (isIP(text)) return text
    const isName = text.length <= 253 && /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/i.test(text)
    return isName && !/(^|\.)\d+$/.test(text) ? text : undefined
  })

export const databaseUrl = (): Kind<string, string> =>
  textual('a postgres:// or postgresql:// URL, special characters percent-encoded', (text) =>
    /^postgres(ql)?:\/\//.test(text) && URL.canParse(text) ? text : undefined,
  )

/** A list, written as text with commas or as an array; entries are trimmed and empty ones dropped. */
export function list(
  rule: string,
  check: (entries: readonly string[]) => string | undefined,
): Kind<readonly string[], string | readonly string[]> {
  const read = (raw: readonly string[]): readonly string[] | Broken => {
    const entries = raw.map((entry) => entry.trim()).filter((entry) => entry !== '')
    const problem = check(entries)
    return problem === undefined ? entries : new Broken(problem)
  }
  const parse = (text: string) => read(text.split(','))
  return {
    rule,
    parse,
    accept: (value) => {
      if (typeof value === 'string') return parse(value)
      const isList = Array.isArray(value) && value.every((entry) => typeof entry === 'string')
      return isList ? read(value) : new Broken(`must be ${rule}`)
    },
    show: (value) => value.join(','),
  }
}

/** Checks each entry of a list by the same rule; messages name entries by position. */
export const each =
  (check: (entry: string) => string | undefined, min = 0) =>
  (entries: readonly string[]): string | undefined => {
    if (entries.length < min) return 'must have at least one entry'
    const problems = entries.map((entry, index) => ({ rule: check(entry), at: index + 1 }))
    const broken = problems
      .filter(({ rule }) => rule !== undefined)
      .map(({ rule, at }) => `entry ${at} ${rule}`)
    return broken.length > 0 ? broken.join('; ') : undefined
  }

/** The rules of the cookie keys, for the setting and for the generated file. */
export function checkCookieKeys(keys: readonly string[]): string | undefined {
  if (keys.length === 0) return 'must have at least one key'
  if (new Set(keys).size < keys.length) return 'must not have the same key twice'
  return keys.some((key) => key.length < 32) ? 'must have keys of at least 32 characters each' : undefined
}

/** At most `max` charges within `seconds`. */
export type Limit = { max: number; seconds: number }

export const limit = (): Kind<Limit, string> =>
  textual(
    'max/seconds like 5/900 (1 to 1000000 in 1 to 86400 s)',
    (text) => {
      const [max, seconds] = numbers(text, /^(\d{1,7})\/(\d{1,5})$/)
      if (!max || max > 1_000_000 || !seconds || seconds > 86_400) return undefined
      return { max, seconds }
    },
    ({ max, seconds }) => `${max}/${seconds}`,
  )

/** The names of the hash library; memory in KiB. */
export type Argon2Cost = { memoryCost: number; timeCost: number; parallelism: number }

export const argon2Cost = (): Kind<Argon2Cost, string> =>
  textual(
    'KiB,passes,lanes like 19456,2,1 (up to 4194304,1000,64; memory at least 8 KiB per lane)',
    (text) => {
      const [memoryCost = 0, timeCost = 0, parallelism = 0] = numbers(text, /^(\d{1,7}),(\d{1,4}),(\d{1,2})$/)
      const fits = memoryCost <= 4_194_304 && timeCost >= 1 && timeCost <= 1000 && parallelism >= 1
      return fits && parallelism <= 64 && memoryCost >= 8 * parallelism
        ? { memoryCost, timeCost, parallelism }
        : undefined
    },
    ({ memoryCost, timeCost, parallelism }) => `${memoryCost},${timeCost},${parallelism}`,
  )

/** Adds `off`, which is null. */
export const orOff = <T, O>(kind: Kind<T, O>): Kind<T | null, O | 'off' | null> => ({
  ...orUnset(kind),
  rule: `${kind.rule}, or off`,
  parse: (text, cwd) => (text === 'off' ? null : withOff(kind.parse(text, cwd))),
  accept: (value, cwd) => (value === null || value === 'off' ? null : withOff(kind.accept(value, cwd))),
  show: (value) => (value === null ? 'off' : kind.show(value)),
  option: undefined,
})

/** Adds null, the value of an unset setting. */
export const orUnset = <T, O>(kind: Kind<T, O>): Kind<T | null, O | null> => ({
  ...kind,
  accept: (value, cwd) => (value === null ? null : kind.accept(value, cwd)),
  show: (value) => (value === null ? 'unset' : kind.show(value)),
  option: undefined,
})

/** Adds 0 as an alias of `off`. */
export const orZero = (kind: Kind<number | null, number | 'off' | null>): typeof kind => ({
  ...kind,
  rule: `${kind.rule} or 0`,
  parse: (text, cwd) => (text === '0' ? null : kind.parse(text, cwd)),
  accept: (value, cwd) => (value === 0 ? null : kind.accept(value, cwd)),
})

const withOff = <T>(read: T | Broken): T | Broken =>
  read instanceof Broken ? new Broken(`${read.rule}, or off`) : read

const alternatives = (values: readonly string[]): string =>
  `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`

const numbers = (text: string, form: RegExp): number[] => (form.exec(text)?.slice(1) ?? []).map(Number)
