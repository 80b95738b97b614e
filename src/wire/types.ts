import { z } from 'zod'

/**
 * Wire types that every surface uses. Parsing yields the normalised value.
 * Well-formedness (no U+0000, no lone surrogate) is checked for the whole input at once: `badText`.
 */

/** Any version and variant; upper case is accepted and becomes lower case. */
export const Uuid = z.guid().toLowerCase()

/** RFC 3339 date-time with `Z` or a numeric offset; becomes the 24-character UTC form, cut to milliseconds. */
export const Timestamp = z
  .string()
  .check((payload) => {
    const utc = toUtc(payload.value)
    if (utc !== undefined) payload.value = utc
    else payload.issues.push({ code: 'invalid_format', format: 'datetime', input: payload.value })
  })
  .meta({ format: 'date-time' })

/** An integer in `min`..`max`; one issue at most. */
export const Int = (min: number, max: number) => z.int({ abort: true }).min(min).max(max)

/** 0..`max` UTF-16 units. zod counts code points, which are never more; its `max` serves the JSON schema. */
export const Text = (max: number) =>
  z
    .string()
    .max(max, { abort: true })
    .check((payload) => {
      if (payload.value.length > max) payload.issues.push(tooBig(max, payload.value))
    })

/** The raw zod issue of a text that is too long by another measure than code points. */
export const tooBig = (maximum: number, input: string): z.core.$ZodRawIssue => ({
  code: 'too_big',
  origin: 'string',
  maximum,
  inclusive: true,
  input,
})

/** Page size 1..`max`; null or absent is `fallback`. */
export const Limit = (max: number, fallback: number) =>
  Int(1, max)
    .nullish()
    .transform((limit) => limit ?? fallback)

/** The longest cursor, in characters. */
export const cursorLengthMax = 512

const cursorPattern = '^[A-Za-z0-9_-]{1,512}$'
const cursorText = new RegExp(cursorPattern)

/**
 * The shape of a page cursor; null or absent asks for the first page. Every other value is
 * `invalid_cursor`, so that a wrong type answers like a wrong signature.
 */
export const CursorText = (
  z
    .unknown()
    .refine((value) => value === null || (typeof value === 'string' && cursorText.test(value)), {
      params: { code: 'invalid_cursor' },
    })
    .meta({ type: ['string', 'null'], pattern: cursorPattern }) as z.ZodType as z.ZodType<
    string | null,
    string | null
  >
).optional()

const rfc3339 = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i

/** The UTC form, or undefined where the text is no moment that wire and database both can hold. */
function toUtc(text: string): string | undefined {
  const [, date, time, fraction = '', sign, hours, minutes] = rfc3339.exec(text) ?? []
  if (date === undefined || time === undefined) return undefined
  const local = new Date(`${date}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`)
  // Date rolls 30 February into March and 24:00 into the next day; only a real moment prints back.
  if (Number.isNaN(local.getTime()) || !local.toISOString().startsWith(`${date}T${time}`)) return undefined
  const offset = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000
  const utc = new Date(local.getTime() - (sign === '-' ? -offset : offset)).toISOString()
  // PostgreSQL has no year 0; years past 9999 or before 0 print with a sign and more digits.
  return utc.length === 24 && !utc.startsWith('0000') ? utc : undefined
}
