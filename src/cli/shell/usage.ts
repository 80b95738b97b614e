import type { z } from 'zod'
import type { Source, Words } from '../../core/operation.ts'
import { WrongUsage } from './command.ts'

/** One word of a usage text: an option, a positional value, or a literal word. */
type Part = { name: string; takes: 'nothing' | 'value' | 'place'; choices?: readonly string[] }

/** How one key of an input is written on the command line. */
export type Argument = {
  key: string
  source: Exclude<Source, string> | string
  schema: z.ZodType
  isRequired: boolean
  segments: readonly string[]
  parts: readonly Part[]
}

const word = /(--[a-z-]+)(?: ([A-Z]+))?|\(([a-z]+(?:\|[a-z]+)+)\)|([A-Z]+)|([a-z_]+)/g

function partsOf(segment: string): Part[] {
  return [...segment.matchAll(word)].map(([, option, value, choices, place, literal]) => {
    if (option !== undefined) return { name: option, takes: value ? 'value' : 'nothing' }
    if (choices !== undefined) return { name: choices, takes: 'place', choices: choices.split('|') }
    return literal === undefined
      ? { name: place as string, takes: 'place' }
      : { name: literal, takes: 'place', choices: [literal] }
  })
}

export function argumentOf(key: string, source: Source, schema: z.ZodType): Argument {
  const usage = typeof source === 'string' ? source : 'fixed' in source ? [] : source.usage
  const segments = typeof usage === 'string' ? [usage] : usage
  const isRequired = !schema.safeParse(undefined).success
  return { key, source, schema, isRequired, segments, parts: segments.flatMap(partsOf) }
}

/** The arguments of a usage line, positional ones before options. */
export function usageOf(given: readonly Argument[]): string {
  const texts = given.flatMap(({ segments, isRequired }) =>
    segments.map((text) => {
      if (/^[[(].*[\])]$/.test(text)) return text
      return isRequired ? (text.includes(' | ') ? `(${text})` : text) : `[${text}]`
    }),
  )
  const isOption = (text: string): boolean => /^[[(]?--/.test(text)
  return [...texts.filter((text) => !isOption(text)), ...texts.filter(isOption)].join(' ')
}

/**
 * A required value may be empty where the input takes an empty text, such as a name; an optional one is left out
 * instead.
 */
export const optionsOf = (given: readonly Argument[]) =>
  Object.fromEntries(
    given.flatMap(({ parts, isRequired, schema }) =>
      parts
        .filter(({ takes }) => takes !== 'place')
        .map(({ name, takes }) => [
          name.slice(2),
          {
            type: takes === 'value' ? ('string' as const) : ('boolean' as const),
            mayBeEmpty: isRequired && schema.safeParse('').success,
          },
        ]),
    ),
  )

/** Arguments by name: options, and positional ones in their order. */
export function wordsOf(
  given: readonly Argument[],
  positionals: readonly string[],
  options: Readonly<Record<string, unknown>>,
): Words {
  const words: Record<string, string | true | undefined> = {}
  for (const [name, value] of Object.entries(options))
    if (value !== undefined) words[`--${name}`] = value as string | true
  const places = given.flatMap(({ parts, isRequired, segments }) =>
    parts
      .filter(({ takes }) => takes === 'place')
      .map((part) => ({ ...part, isNeeded: isRequired && !segments.some((text) => text.includes(' | ')) })),
  )
  if (positionals.length > places.length) throw new WrongUsage('Too many arguments.')
  for (const [index, { name, isNeeded, choices }] of places.entries()) {
    const value = positionals[index]
    if (value === undefined && isNeeded) throw new WrongUsage(`${name} is missing.`)
    if (value !== undefined && choices && !choices.includes(value))
      throw new WrongUsage(`Write ${choices.join(' or ')} instead of "${value}".`)
    words[name] = value
  }
  return words
}

/** The value of a key that is declared by a usage text. */
export function valueFrom({ schema, isRequired, parts, segments }: Argument, words: Words): unknown {
  const given = parts.filter(({ name }) => words[name] !== undefined)
  const [text = ''] = segments
  const isOne = given.length === 1 || (given.length === 0 && !isRequired)
  if (!isOne && text.includes(' | ')) throw new WrongUsage(`Give one of: ${text}.`)
  const last = given.at(-1)
  if (!last && isRequired) throw new WrongUsage(`${text} is missing.`)
  if (!last) return undefined
  if (last.takes === 'nothing') return last.name === '--none' ? null : true
  return converted(String(words[last.name]), schema, last.name)
}

function converted(text: string, schema: z.ZodType, name: string): unknown {
  const type = typeOf(schema)
  if (type === 'boolean') return text === 'true'
  if (type !== 'number') return text
  if (!/^\d{1,16}$/.test(text)) throw new WrongUsage(`${name} takes a whole number.`)
  return Number(text)
}

function typeOf({ def }: z.ZodType): string {
  const inner = 'innerType' in def ? def.innerType : 'in' in def ? def.in : undefined
  return inner ? typeOf(inner as z.ZodType) : def.type
}
