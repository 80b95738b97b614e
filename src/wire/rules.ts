import type { z } from 'zod'
import { unionText } from './type-text.ts'

/**
 * What a refused value should have been, in words. They come from the schema alone: submitted values are never
 * repeated, nor are texts of a consumer's schema, which may contain them.
 */

const patternRules = new Map<string, string>()

/** A pattern, with a sentence that states its rule. */
export function worded(pattern: RegExp, rule: string): RegExp {
  patternRules.set(String(pattern), rule)
  return pattern
}

/** The words for the pattern of a JSON schema. */
export const wordsOf = (source: string): string | undefined =>
  patternRules.get(`/${source}/`) ?? patternRules.get(`/${source}/u`)

/** For `superRefine`: refuses an object that has none or several of its optional keys. */
export const exactlyOne =
  (rule: string) =>
  (given: object, context: z.RefinementCtx): void => {
    if (Object.keys(given).length !== 1)
      context.addIssue({ code: 'custom', params: { code: 'invalid_value', rule } })
  }

/** Undefined: the code says all there is to say. */
export function ruleOf(found: z.core.$ZodIssue): string | undefined {
  switch (found.code) {
    case 'invalid_type':
      return `${types[found.expected] ?? 'Another type'} is required.`
    case 'too_small':
      return bound(found.origin, found.inclusive === false ? 'More than' : 'At least', found.minimum, found)
    case 'too_big':
      return bound(found.origin, found.inclusive === false ? 'Less than' : 'At most', found.maximum, found)
    case 'invalid_format':
      return formats[found.format] ?? patternRules.get(String(found.pattern))
    case 'not_multiple_of':
      return `A multiple of ${found.divisor} is required.`
    case 'invalid_value':
      return found.values.length > valuesMax ? undefined : `Accepted: ${values(found.values)}.`
    case 'custom':
      return typeof found.params?.rule === 'string' ? found.params.rule : undefined
    default:
      return (found as { rule?: string }).rule
  }
}

const valuesMax = 30
const values = (all: readonly unknown[]): string => all.map((value) => JSON.stringify(value)).join(', ')

const types: Readonly<Record<string, string>> = {
  string: 'A string',
  number: 'A number',
  int: 'An integer',
  boolean: 'true or false',
  array: 'An array',
  object: 'An object',
  record: 'An object',
  null: 'null',
}

const formats: Readonly<Record<string, string>> = {
  guid: 'A UUID is required, such as 3f2b8c1e-0d4a-4b6e-9f0a-7c5d2e1b8a90.',
  datetime:
    'A time with its zone is required, such as 2026-01-02T03:04:05Z or 2026-01-02T04:04:05.678+01:00.',
  email: 'An e-mail address is required, such as ada@example.org.',
}

function bound(origin: string, words: string, value: number | bigint, found: object): string {
  if (origin === 'date') {
    const side = words === 'At least' || words === 'More than' ? 'from' : 'up to'
    return `A time ${side} ${new Date(Number(value)).toISOString()} is required.`
  }
  if ('unit' in found) return `${words} ${value} ${found.unit}.`
  const [one, many] = units[origin] ?? ['', '']
  return `${words} ${value}${Number(value) === 1 ? one : many}.`
}

const units: Readonly<Record<string, [one: string, many: string]>> = {
  string: [' character', ' characters'],
  array: [' entry', ' entries'],
}

/** Passed to a parse, so that issues carry what only the schema knows, and the input they are about. */
export const withRules: z.core.ParseContext<z.core.$ZodIssue> = {
  reportInput: true,
  error: (raw) => {
    const rule = schemaRule(raw)
    if (rule !== undefined) Object.assign(raw, { rule })
    return undefined
  },
}

function schemaRule(raw: z.core.$ZodRawIssue): string | undefined {
  const schema = raw.inst as z.core.$ZodType | undefined
  if (!schema || !('_zod' in schema)) return undefined
  if (raw.code === 'unrecognized_keys') {
    const { shape = {} } = schema._zod.def as z.core.$ZodObjectDef
    const known = Object.keys(shape)
    return known.length === 0
      ? 'Unknown key. No keys are accepted here.'
      : `Unknown key; known ones: ${known.join(', ')}.`
  }
  return raw.code === 'invalid_union' ? unionRule(schema) : undefined
}

/** Made once for each union that a value ever missed: the schemas of a service are few and live as long as it does. */
const unionRules = new WeakMap<z.core.$ZodType, string>()

function unionRule(schema: z.core.$ZodType): string {
  const made = unionRules.get(schema) ?? `Accepted: ${unionText(schema).replace(/\s+/g, ' ')}.`
  unionRules.set(schema, made)
  return made
}
