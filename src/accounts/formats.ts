import { z } from 'zod'
import { worded } from '../wire/rules.ts'
import { noControls, tooBig } from '../wire/types.ts'

/**
 * Formats of identifiers and credentials. Parsing returns the normalised value. A refused value yields one
 * issue: too_small, too_big or invalid_format. zod counts code points.
 */

const usernameRule =
  'Letters a to z, digits, _ and - are accepted, beginning with a letter and ending with a letter or digit.'

/** 3 to 39 ASCII characters, lower-cased. */
export const Username = z
  .string()
  .min(3, { abort: true })
  .max(39, { abort: true })
  .regex(worded(/^[A-Za-z][A-Za-z0-9_-]{1,37}[A-Za-z0-9]$/, usernameRule), { abort: true })
  .toLowerCase()

/** Username or e-mail as typed at login, turned into the key of `identifierOf`. */
export const UsernameProvided = z
  .string()
  .min(1, { abort: true })
  .max(255, { abort: true })
  .overwrite((text) => identifierOf(text).key)
  .min(1)

/** An address, stored as given and compared by `fold`. At most 254 UTF-8 bytes. */
export const Email = z
  .string()
  .check((payload) => {
    if (Buffer.byteLength(payload.value) > 254) payload.issues.push(tooBig(254, payload.value, 'bytes'))
    else if (!isEmail(payload.value))
      payload.issues.push({ code: 'invalid_format', format: 'email', input: payload.value })
  })
  .meta({ maxLength: 254, description: 'An e-mail address, at most 254 bytes.' })

/** Minimum code points of a new password. */
export const PASSWORD_LENGTH_MIN = 12
const passwordLengthMax = 300

/** A new password; hashed as received. */
export const Password = z.string().min(PASSWORD_LENGTH_MIN).max(passwordLengthMax)

/** A password to verify; an empty one is invalid input. */
export const PasswordProvided = z.string().min(1).max(passwordLengthMax)

/** Lower-case hex SHA-256 of the session token. */
export const SessionId = z
  .string()
  .regex(worded(/^[0-9a-f]{64}$/, 'The id of a session is required: 64 digits of 0-9 and a-f.'))

/** No control characters (C0, DEL, C1); trimmed; at most 100 code points, blank allowed. */
export const ActorName = z.string().regex(noControls, { abort: true }).trim().max(100)

/**
 * The form in which e-mails are compared and unique: canonical composition around simple case folding.
 * Different letters (ß and ss, i and İ, ﬁ and fi) stay different, because mail servers tell them apart.
 */
export const fold = (text: string): string => folded(text, 'NFC')

/** The stored key of an e-mail, if there is one. */
export const emailKey = (email: string | null): string | null => (email === null ? null : fold(email))

/**
 * The form in which names are searched: like `fold`, but it also ignores compatibility variants such as full
 * width and ligatures. Apart from composition it maps each code point alone, so prefixes stay prefixes.
 */
export const foldName = (text: string): string => folded(text, 'NFKC')

function folded(text: string, form: 'NFC' | 'NFKC'): string {
  if (/^[ -~]*$/.test(text)) return text.toLowerCase()
  return Array.from(text.normalize(form), foldPoint).join('').normalize(form)
}

/**
 * Goes through upper case, because σ and ς, or µ and μ, have only that in common. Takes one code point at a time,
 * because lower-casing a whole text depends on neighbours. If upper case needs several letters (ß), it is skipped.
 */
function foldPoint(point: string): string {
  const exception = foldExceptions[point]
  if (exception !== undefined) return exception
  const upper = point.toUpperCase()
  return (isOnePoint(upper) ? upper : point).toLowerCase()
}

/** The dotless i shares its upper case with another letter. The two ligatures of s and t count as one letter. */
const foldExceptions: Readonly<Record<string, string>> = { ı: 'ı', ﬅ: 'ﬆ' }

const isOnePoint = (text: string): boolean =>
  text.length === String.fromCodePoint(text.codePointAt(0) as number).length

/** The key to look up a login name by: `account.email_key` or `account.username`. Idempotent. */
export function identifierOf(usernameProvided: string): { kind: 'email' | 'username'; key: string } {
  const text = usernameProvided.trim()
  if (text.includes('@')) return { kind: 'email', key: fold(text) }
  // ASCII only: the Kelvin sign must not become the k of another account's username.
  return { kind: 'username', key: text.replace(/[A-Z]+/g, (upper) => upper.toLowerCase()) }
}

function isEmail(text: string): boolean {
  const [local, domain, more] = text.split('@', 3)
  if (!local || domain === undefined || more !== undefined) return false
  return domain.slice(1, -1).includes('.') && !/[\s\p{Cc}]/u.test(text)
}
