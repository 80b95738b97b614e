import { z } from 'zod'
import { tooBig } from '../wire/types.ts'

/**
 * Formats of identifiers and credentials (contract 2, section 3). Parsing yields the normalised value;
 * a refused value gives one issue: too_small, too_big or invalid_format. zod counts code points.
 */

/** 3..39 ASCII characters; becomes lower case. */
export const Username = z
  .string()
  .min(3, { abort: true })
  .max(39, { abort: true })
  .regex(/^[A-Za-z][A-Za-z0-9_-]{1,37}[A-Za-z0-9]$/, { abort: true })
  .toLowerCase()

/** Username or email as typed at login; becomes the key that `identifierOf` gives. */
export const UsernameProvided = z
  .string()
  .min(1, { abort: true })
  .max(255, { abort: true })
  .overwrite((text) => identifierOf(text).key)
  .min(1)

/** An address as given; compared by `fold`. At most 254 UTF-8 bytes. */
export const Email = z.string().check((payload) => {
  if (Buffer.byteLength(payload.value) > 254) payload.issues.push(tooBig(254, payload.value))
  else if (!isEmail(payload.value))
    payload.issues.push({ code: 'invalid_format', format: 'email', input: payload.value })
})

/** Fewest code points of a new password. */
export const PASSWORD_LENGTH_MIN = 12
const passwordLengthMax = 300

/** A password to be set; hashed as received. */
export const Password = z.string().min(PASSWORD_LENGTH_MIN).max(passwordLengthMax)

/** A password to be verified; an empty one is refused as input. */
export const PasswordProvided = z.string().min(1).max(passwordLengthMax)

/** Lower-case hex SHA-256 of the session token. */
export const SessionId = z.string().regex(/^[0-9a-f]{64}$/)

/** No control character (C0, DEL, C1), 0..100 code points after trim; becomes trimmed, blank allowed. */
export const ActorName = z
  .string()
  .regex(/^\P{Cc}*$/u, { abort: true })
  .trim()
  .max(100)

/**
 * The form in which e-mails are compared and unique: canonical composition around simple case folding. Two
 * mailboxes of other letters (ß and ss, i and İ, ﬁ and fi) stay two, as mail servers tell them apart.
 */
export const fold = (text: string): string => folded(text, 'NFC')

/**
 * The form in which names are searched: as `fold`, and blind to compatibility variants such as full width
 * or ligatures. Apart from composition it goes code point by code point, so prefixes stay prefixes.
 */
export const foldName = (text: string): string => folded(text, 'NFKC')

function folded(text: string, form: 'NFC' | 'NFKC'): string {
  if (/^[ -~]*$/.test(text)) return text.toLowerCase()
  return Array.from(text.normalize(form), foldPoint).join('').normalize(form)
}

/**
 * By way of upper case, since σ and ς, or µ and μ, have only that in common. Alone, since lower-casing a whole
 * text looks at neighbours. Where upper case takes several letters (ß), lower case alone decides.
 */
function foldPoint(point: string): string {
  const exception = foldExceptions[point]
  if (exception !== undefined) return exception
  const upper = point.toUpperCase()
  return (isOnePoint(upper) ? upper : point).toLowerCase()
}

/** The dotless i has the upper case of another letter; the two ligatures of s and t are one letter. */
const foldExceptions: Readonly<Record<string, string>> = { ı: 'ı', ﬅ: 'ﬆ' }

const isOnePoint = (text: string): boolean =>
  text.length === String.fromCodePoint(text.codePointAt(0) as number).length

/** What a login name is looked up by: `account.email_key` or `account.username`. Idempotent. */
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
