import { isIP } from 'node:net'
import { z } from 'zod'
import { parseDatabaseUrl } from './database-url.ts'

/**
 * A kind of setting. For most faults its schemas have no message; `read` then says `rule`, which tells what is accepted
 * and never contains the value. `T` is the type of the value, `O` that of an option.
 */
export type Kind<T, O> = {
  /** Completes "must be …"; also the column "Values" in the docs. */
  rule: string
  /** Decodes what a variable holds, and encodes a value as it is written there. */
  text: z.ZodType<T>
  /** Checks an option of a config file or of the library: a value of its own type, or text as in a variable. */
  option: z.ZodType<T, O>
  /** Resolved against the working directory. */
  isPath?: true
}

/** A value that breaks its rule. `rule` continues the name of the setting. */
export class Broken {
  readonly rule: string
  constructor(rule: string) {
    this.rule = rule
  }
}

/** The value, or the rules that it breaks; entries of lists are named by their position. */
export function read<T>(rule: string, schema: z.ZodType<T>, value: unknown): T | Broken {
  const parsed = schema.safeParse(value, { error: () => `must be ${rule}` })
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map(({ path: [at], message }) =>
    typeof at === 'number' ? `entry ${at + 1} ${message}` : message,
  )
  return new Broken([...new Set(problems)].join('; '))
}

/** The value as written in a variable; undefined for one that is unset. */
export const written = <T>({ text }: Pick<Kind<T, unknown>, 'text'>, value: T): string | undefined =>
  z.safeEncode(text, value).data as string | undefined

/** A kind whose options are text too. */
const textual = <T, O>(rule: string, schema: z.ZodType<T, O>): Kind<T, O> => ({
  rule,
  text: schema,
  option: schema,
})

export const flag = (): Kind<boolean, boolean> => ({
  rule: 'true or false',
  text: z.stringbool({ truthy: ['true'], falsy: ['false'], case: 'sensitive' }),
  option: z.boolean(),
})

export function whole(min: number, max: number, unit = ''): Kind<number, number> {
  const option = z.int().min(min).max(max)
  const digits = z.string().regex(/^-?(0|[1-9]\d*)$/)
  return {
    rule: `a whole number from ${min} to ${max}${unit && ` (${unit})`}`,
    text: z.codec(digits, option, { decode: Number, encode: String }),
    option,
  }
}

export function port(): Kind<number, number> {
  const number = whole(0, 65535)
  const error =
    `must be ${number.rule}; a value like tcp://… is a service link of Kubernetes: ` +
    'set enableServiceLinks: false or rename the service'
  const noLink = z.string().refine((text) => !/^\w+:\/\//.test(text), { error, abort: true })
  return { ...number, text: noLink.pipe(number.text as z.ZodType<number, string>) }
}

export const oneOf = <const V extends string>(...values: V[]): Kind<V, V> =>
  textual(`${values.slice(0, -1).join(', ')} or ${values.at(-1)}`, z.enum(values) as z.ZodType<V, V>)

export const path = (rule = 'a path'): Kind<string, string> => ({
  ...textual(rule, z.string().regex(/^[^\0]+$/)),
  isPath: true,
})

export const matching = (rule: string, expression: RegExp): Kind<string, string> =>
  textual(rule, z.string().regex(expression))

/** Text that is lower-cased before it is matched. */
export const lowerCase = (rule: string, expression: RegExp): Kind<string, string> =>
  textual(rule, z.string().toLowerCase().regex(expression))

const hostname = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/i

/** Not a kind of path, because `builtin` would then be resolved against the working directory. */
export const blocklist = (): Kind<string | null, string | null> =>
  orOff(textual('builtin, a readable file', z.string().regex(/^(?!off$)[^\0]+$/)))

export const hostName = (): Kind<string, string> =>
  textual(
    'an IP address (without brackets) or a host name',
    z.string().refine((text) => isIP(text) || (hostname.test(text) && !/(^|\.)\d+$/.test(text))),
  )

const databaseUrlText = () =>
  entry((text) => {
    const url = parseDatabaseUrl(text)
    return typeof url === 'string' ? url : undefined
  })
export const databaseUrl = (): Kind<string, string> =>
  textual('a postgres:// or postgresql:// URL with special characters percent-encoded', databaseUrlText())
export const databaseUrls = () =>
  list('postgres:// or postgresql:// URLs, separated by spaces', z.array(databaseUrlText()).max(8), ' ')

/** A kind of text that a function checks. */
export const checked = (rule: string, fits: (text: string) => boolean): Kind<string, string> =>
  textual(rule, z.string().refine(fits))

/** A list, written as text with a separator or as an array; entries are trimmed and empty ones dropped. */
export const list = (
  rule: string,
  entries: z.ZodType<string[], string[]>,
  separator = ',',
): Kind<readonly string[], string | readonly string[]> => {
  const raw = z.union([z.string(), z.array(z.string()).readonly()])
  const split = z.codec(raw, z.array(z.string()), {
    decode: (given) =>
      (typeof given === 'string' ? given.split(separator) : given)
        .map((entry) => entry.trim())
        .filter((entry) => entry !== ''),
    encode: (list) => list.join(separator),
  })
  return textual(rule, split.pipe(entries))
}

/** An entry that a function checks, which returns the rule that it breaks. */
export const entry = (check: (entry: string) => string | undefined) =>
  z.string().superRefine((text, context) => {
    const message = check(text)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })

export const keyList = () =>
  list(
    'a comma-separated list of different keys, each at least 32 characters',
    z
      .array(z.string())
      .min(1, 'must have at least one key: `cellkeep keys generate` makes one')
      // One key per line would be one long key: it ends all sessions, and no secret can be decrypted.
      .refine(
        (keys) => !keys.some((key) => /[\r\n]/.test(key)),
        'must have commas between its keys, not line breaks',
      )
      .refine((keys) => new Set(keys).size === keys.length, 'must not have the same key twice')
      .refine(
        (keys) => keys.every((key) => key.length >= 32),
        'must have keys of at least 32 characters each, such as `cellkeep keys generate` makes',
      ),
  )

/** At most `max` charges within `seconds`. */
export type Limit = { max: number; seconds: number }

export const limit = (): Kind<Limit, string> =>
  textual(
    'max/seconds like 5/900 (1 to 1000000 in 1 to 86400 s)',
    z.codec(
      z.string().regex(/^\d{1,7}\/\d{1,5}$/),
      z.object({ max: z.int().min(1).max(1_000_000), seconds: z.int().min(1).max(86_400) }),
      {
        decode: (text) => {
          const [max = 0, seconds = 0] = text.split('/').map(Number)
          return { max, seconds }
        },
        encode: ({ max, seconds }) => `${max}/${seconds}`,
      },
    ),
  )

/** The names of the hash library; memory in KiB. */
export type Argon2Cost = { memoryCost: number; timeCost: number; parallelism: number }

export const argon2Cost = (): Kind<Argon2Cost, string> =>
  textual(
    'KiB,passes,lanes like 19456,2,1 (up to 4194304,1000,64; memory at least 8 KiB per lane)',
    z.codec(
      z.string().regex(/^\d{1,7},\d{1,4},\d{1,2}$/),
      z
        .object({
          memoryCost: z.int().max(4_194_304),
          timeCost: z.int().min(1).max(1000),
          parallelism: z.int().min(1).max(64),
        })
        .refine(({ memoryCost, parallelism }) => memoryCost >= 8 * parallelism),
      {
        decode: (text) => {
          const [memoryCost = 0, timeCost = 0, parallelism = 0] = text.split(',').map(Number)
          return { memoryCost, timeCost, parallelism }
        },
        encode: ({ memoryCost, timeCost, parallelism }) => `${memoryCost},${timeCost},${parallelism}`,
      },
    ),
  )

/** Adds null, the value of an unset setting. */
export const orUnset = <T, O>(kind: Kind<T, O>): Kind<T | null, O | null> => ({
  ...kind,
  option: kind.option.nullable(),
})

/** Adds `off`, which is null. */
export const orOff = <T, O>(kind: Kind<T, O>): Kind<T | null, O | 'off' | null> => ({
  rule: `${kind.rule}, or off`,
  text: orWord(kind.text, 'off'),
  option: orWord(kind.option.nullable(), 'off'),
})

/** Adds 0 as an alias of `off`. */
export const orZero = (kind: Kind<number | null, number | 'off' | null>): typeof kind => ({
  rule: `${kind.rule} or 0`,
  text: orWord(kind.text, '0'),
  option: orWord(kind.option, 0) as typeof kind.option,
})

const orWord = <T, O, const W extends string | number>(
  schema: z.ZodType<T, O>,
  word: W,
): z.ZodType<T | null, O | W> =>
  z.union([schema, z.codec(z.literal(word), z.null(), { decode: () => null, encode: () => word })])
