import { z } from 'zod'
import { worded } from './rules.ts'

/**
 * Wire types that every surface uses. Parsing yields the normalised value. `badText` checks the whole input at once
 * for U+0000 and lone surrogates, so these types do not.
 */

/** Accepts any version and variant; upper case becomes lower case. */
export const Uuid = z.guid().toLowerCase()

/** The language of a message, such as `en` or `de-AT`. */
export const localeForm = /^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$/
export const Locale = z.string().regex(worded(localeForm, 'A locale like en or de-AT is required.'))

/** RFC 3339 date-time with `Z` or a numeric offset; becomes the 24-character UTC form, truncated to milliseconds. */
export const Timestamp = z
  .string()
  .check((payload) => {
    const utc = toUtc(payload.value)
    if (utc !== undefined) payload.value = utc
    else payload.issues.push({ code: 'invalid_format', format: 'datetime', input: payload.value })
  })
  .meta({ format: 'date-time', description: 'A time of RFC 3339 with `Z` or an offset.' })

/** An integer in `min`..`max`; reports one issue at most. */
export const Int = (min: number, max: number) => z.int({ abort: true }).min(min).max(max)

/** 0..`max` UTF-16 units. zod counts code points, which are never more; its `max` is there for the JSON schema. */
export const Text = (max: number) =>
  z
    .string()
    .max(max, { abort: true })
    .check((payload) => {
      if (payload.value.length > max) payload.issues.push(tooBig(max, payload.value))
    })

/** Spelled out: the pattern is in the documents, and regular expressions of Python have no `\P{Cc}`. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it refuses.
export const noControls = worded(/^[^\x00-\x1f\x7f-\x9f]*$/, 'Text without control characters is required.')

/** Up to `max` code points, at least one if `min` is 1. */
export const Characters = (min: 0 | 1, max: number) =>
  z.string().check(characters(min, max)).meta(lengths(min, max))

export const lengths = (min: number, max: number) => ({ ...(min > 0 && { minLength: min }), maxLength: max })

export const characters = (min: 0 | 1, max: number) => (payload: z.core.ParsePayload<string>) => {
  const { value: input } = payload
  const bound = { origin: 'string', inclusive: true, input } as const
  if (input.length < min) payload.issues.push({ ...bound, code: 'too_small', minimum: min })
  // Code points are counted only if the number of UTF-16 units does not decide.
  else if (input.length > 2 * max || (input.length > max && [...input].length > max))
    payload.issues.push({ ...bound, code: 'too_big', maximum: max })
}

/** Trimmed first, then `Characters(1, max)`. */
export const Trimmed = (max: number) => z.string().trim().check(characters(1, max)).meta(lengths(1, max))

/** The raw zod issue for a text that is too long in a unit other than code points. */
export const tooBig = (maximum: number, input: string, unit?: 'bytes'): z.core.$ZodRawIssue => ({
  code: 'too_big',
  origin: 'string',
  maximum,
  inclusive: true,
  input,
  ...(unit && { unit }),
})

/** An optional input. Null means the same as absent, also for an idempotency key, which belongs to the parsed input. */
export const OrNull = <T extends z.ZodType>(type: T) =>
  type.nullish().transform((value) => value ?? undefined)

/** Page size 1..`max`; null or absent is `defaultLimit`. */
export const Limit = (max: number, defaultLimit: number) =>
  Int(1, max)
    .nullish()
    .transform((limit) => limit ?? defaultLimit)
    .describe(`${defaultLimit} if left out.`)

/** The longest cursor, in characters. */
export const cursorLengthMax = 512

const cursorPattern = '^[A-Za-z0-9_-]{1,512}$'
const cursorText = new RegExp(cursorPattern)

/**
 * The shape of a page cursor; null or absent asks for the first page. Any other value is `invalid_cursor`, so a
 * wrong type gets the same answer as a wrong signature.
 */
export const CursorText = (
  z
    .unknown()
    .refine((value) => value === null || (typeof value === 'string' && cursorText.test(value)), {
      params: { code: 'invalid_cursor' },
    })
    .meta({
      type: ['string', 'null'],
      pattern: cursorPattern,
      description: 'The `next_cursor` of the page before, with the same filters.',
    }) as z.ZodType as z.ZodType<string | null, string | null>
).optional()

const rfc3339 = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i

/** The UTC form; undefined if the text is not a moment that both the wire and the database can hold. */
function toUtc(text: string): string | undefined {
  const [, date, time, fraction = '', sign, hours, minutes] = rfc3339.exec(text) ?? []
  if (date === undefined || time === undefined) return undefined
  const local = new Date(`${date}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`)
  // Date turns 30 February into March and 24:00 into the next day; only a real moment prints back unchanged.
  if (Number.isNaN(local.getTime()) || !local.toISOString().startsWith(`${date}T${time}`)) return undefined
  const offset = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000
  const utc = new Date(local.getTime() - (sign === '-' ? -offset : offset)).toISOString()
  // PostgreSQL has no year 0. Years after 9999 and before 0 print with a sign and more digits.
  return utc.length === 24 && !utc.startsWith('0000') ? utc : undefined
}
