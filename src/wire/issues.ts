import type { z } from 'zod'
import { ruleOf } from './rules.ts'

/**
 * The issues of a refused input, and the checks on raw JSON that run before any schema. An issue never contains a
 * submitted value; keys in its path are shortened and cleaned.
 */

const messages = {
  invalid_type: 'Missing or of the wrong type.',
  too_small: 'Too small or too short.',
  too_big: 'Too big or too long.',
  invalid_format: 'Not in the expected format.',
  invalid_value: 'Not one of the accepted values.',
  unrecognized_keys: 'Unknown key.',
  invalid_union: 'Matches none of the accepted shapes.',
  invalid_cursor: 'Not a cursor of this list. Start again without one.',
  custom: 'Refused by a rule of this field.',
  password_common: 'A password that many people use, or a name of the account or site. Choose another.',
  unknown_scope_kind: 'This kind of scope is not declared.',
  invite_identifier_required: 'Give an email, a username or both.',
} as const

type IssueCode = keyof typeof messages
export type IssuePath = (string | number)[]
export type Issue = { path: IssuePath; code: IssueCode; message: string }

const issuesMax = 20
const keyLengthMax = 64

/** Makes one issue; `message` states the rule where the code alone does not. */
export const issue = (
  path: readonly PropertyKey[],
  code: IssueCode,
  message: string = messages[code],
): Issue => ({ path: path.map(toSegment), code, message })

/**
 * The issues of a schema failure, 20 at most. A custom issue with `params: { code }` gets that code if it is an
 * `IssueCode`; otherwise it is `custom` with the message of the schema.
 */
export function toIssues(error: { readonly issues: readonly z.core.$ZodIssue[] }): Issue[] {
  return error.issues.slice(0, issuesMax).map((found) => toIssue(found, found.path))
}

function toIssue(found: z.core.$ZodIssue, path: readonly PropertyKey[]): Issue {
  switch (found.code) {
    case 'unrecognized_keys':
      return issue([...path, ...found.keys.slice(0, 1)], 'unrecognized_keys', ruleOf(found))
    case 'custom': {
      const code: unknown = found.params?.code
      return isIssueCode(code) ? issue(path, code, ruleOf(found)) : issue(path, 'custom', found.message)
    }
    case 'invalid_value':
      return issue(path, hasOtherType(found) ? 'invalid_type' : 'invalid_value', ruleOf(found))
    case 'invalid_union':
      return issue(path, fitsNoShape(found) ? 'invalid_type' : 'invalid_union', ruleOf(found))
    case 'invalid_key':
    case 'invalid_element': {
      const [inner] = found.issues
      return inner === undefined ? issue(path, 'invalid_value') : toIssue(inner, [...path, ...inner.path])
    }
    default:
      return issue(path, isIssueCode(found.code) ? found.code : 'invalid_value', ruleOf(found))
  }
}

/** True if no accepted value has the type of the input. Known only if the parse reports its input (`withRules`). */
const hasOtherType = ({ values, ...found }: z.core.$ZodIssueInvalidValue): boolean =>
  'input' in found && !values.some((value) => value === null || typeof value === typeof found.input)

/** True if the value, or the key that tells the shapes apart, is missing or has a type that no shape has there. */
function fitsNoShape(found: z.core.$ZodIssueInvalidUnion): boolean {
  if (!('options' in found)) return found.errors.length > 0 && found.errors.every(isOfOtherType)
  const { input, discriminator = '', options = [] } = found
  if (typeof input !== 'object' || input === null) return false
  const value: unknown = (input as Record<string, unknown>)[discriminator]
  return !options.some((option) => typeof option === typeof value)
}

const isOfOtherType = (shape: z.core.$ZodIssue[]): boolean =>
  shape.some((found) => found.path.length === 0 && toIssue(found, []).code === 'invalid_type')

const isIssueCode = (code: unknown): code is IssueCode =>
  typeof code === 'string' && Object.hasOwn(messages, code)

/** Keys come from the caller: long ones would bloat the answer, ill-formed ones would break it. */
function toSegment(key: PropertyKey): string | number {
  if (typeof key === 'number') return key
  return String(key).slice(0, keyLengthMax).toWellFormed().replaceAll('\0', '\ufffd')
}

/** The issue of the first bad text, see `badText`. */
export function badTextIssue(value: unknown): Issue | undefined {
  const path = badText(value)
  return path && issue(path, 'invalid_format', 'Text without U+0000 and without lone surrogates is required.')
}

const isBad = (text: string): boolean => !text.isWellFormed() || text.includes('\0')

/**
 * The path of the first string or key, in document order and at any depth, that contains U+0000 or a lone
 * surrogate; undefined when there is none. Works on cyclic values too.
 */
export function badText(value: unknown): IssuePath | undefined {
  if (typeof value === 'string') return isBad(value) ? [] : undefined
  const seen = new Set<object>()
  const open: Level[] = []
  const enter = (inner: unknown): void => {
    if (typeof inner !== 'object' || inner === null || seen.has(inner)) return
    seen.add(inner)
    open.push({ of: inner, keys: Array.isArray(inner) ? undefined : Object.keys(inner), next: 0 })
  }
  const path = (): IssuePath =>
    open.map(({ keys, next }) => (keys === undefined ? next - 1 : (keys[next - 1] as string)))
  enter(value)
  for (let level = open.at(-1); level !== undefined; level = open.at(-1)) {
    const { of, keys } = level
    if (level.next >= (keys ?? (of as unknown[])).length) {
      open.pop()
      continue
    }
    const key = keys === undefined ? level.next : (keys[level.next] as string)
    level.next++
    const inner = (of as Record<PropertyKey, unknown>)[key]
    if ((typeof key === 'string' && isBad(key)) || (typeof inner === 'string' && isBad(inner))) return path()
    enter(inner)
  }
  return undefined
}

/** An array or object on the path of the walk; `keys` is undefined for an array. */
type Level = { of: object; keys: string[] | undefined; next: number }

const suspiciousEscape = /\\u(?:0000|d[89a-f])/i

/**
 * False when no string of this JSON text can fail `badText`, so that the walk can be skipped. JSON forbids a raw
 * U+0000 in a string and UTF-8 has no lone surrogates, so only escapes can produce them.
 */
export const mayHoldBadText = (rawJson: string): boolean =>
  suspiciousEscape.test(rawJson) || !rawJson.isWellFormed()
