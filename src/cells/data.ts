import { z } from 'zod'
import type { CellData } from '../registry/hooks.ts'

/** Max size of data as compact JSON, in UTF-8 bytes. */
export const dataBytesMax = 262_144
/** The data object itself is level 1; scalars add no level. */
const depthMax = 64
/** Max code points of the keys `label` and `summary`. */
export const labelMax = 1024
export const summaryMax = 8192

const isData = (value: unknown): value is CellData =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Data as it is sent to the database. Make it once per call: for tens of thousands of keys it takes long. */
export type Compact = { text: string; bytes: number }

export function compact(data: CellData): Compact {
  const text = JSON.stringify(data)
  return { text, bytes: Buffer.byteLength(text) }
}

export const compactBytes = (data: CellData): number => compact(data).bytes

/**
 * Max size of the text form of jsonb, which writes numbers without exponents and a space after each comma and colon.
 */
const textBytesMax = 524_288

/**
 * Checks size, depth and that numbers are finite; returns the issue code of the rule that fails. Does not
 * recurse, since a hostile body may nest as deep as its size allows.
 */
export function checkData(data: CellData): 'too_big' | 'invalid_type' | undefined {
  let level: object[] = [data]
  let added = 0
  let least = 0
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > depthMax) return 'too_big'
    const next: object[] = []
    for (const holder of level) {
      const values = Object.values(holder)
      // The shortest entries are `0,` and `"":0,`. Data that cannot fit is refused before it is serialised, which is
      // slow for a hundred thousand keys.
      least += Math.max(values.length * (Array.isArray(holder) ? 2 : 5) - 1, 0)
      if (least > dataBytesMax) return 'too_big'
      added += Math.max(values.length - 1, 0) + (Array.isArray(holder) ? 0 : values.length)
      for (const value of values) {
        if (typeof value === 'number') {
          if (!Number.isFinite(value)) return 'invalid_type'
          added += writtenOut(value)
        } else if (typeof value === 'object' && value !== null) next.push(value)
      }
    }
    level = next
  }
  const bytes = compactBytes(data)
  return bytes > dataBytesMax || bytes + added > textBytesMax ? 'too_big' : undefined
}

/** How many characters a number gains when it is written without an exponent. */
function writtenOut(value: number): number {
  const [mantissa, power] = String(value).split('e')
  if (mantissa === undefined || power === undefined) return 0
  const exponent = Number(power)
  const digits = mantissa.replace(/[-.]/g, '').length
  const length = exponent < 0 ? 1 - exponent + digits : exponent + 1
  return length + (value < 0 ? 1 : 0) - mantissa.length - power.length - 1
}

/** The rule for the whole of the data. */
export const dataRule = `A JSON object of finite numbers is accepted, at most ${dataBytesMax} bytes and ${depthMax} levels deep.`

function ruleFor([key]: readonly PropertyKey[], code: string): string {
  if (key === undefined) return dataRule
  return code === 'too_big'
    ? `At most ${key === 'label' ? labelMax : summaryMax} characters.`
    : 'A string is required.'
}

const refine = (texts: { isPatch: boolean }) => (value: unknown, context: z.core.$RefinementCtx<unknown>) => {
  const report = (path: (string | number)[], code: string) =>
    context.addIssue({ code: 'custom', path, params: { code, rule: ruleFor(path, code) }, message: '' })
  if (!isData(value)) return report([], 'invalid_type')
  for (const [key, max] of [
    ['label', labelMax],
    ['summary', summaryMax],
  ] as const) {
    if (!Object.hasOwn(value, key)) continue
    const text = value[key]
    if (texts.isPatch && text === null) continue
    if (typeof text !== 'string') report([key], 'invalid_type')
    else if (longerThan(text, max)) report([key], 'too_big')
  }
  const problem = checkData(value)
  if (problem) report([], problem)
}

/** Passes on the same object: rebuilding it key by key would assign through `__proto__`. */
export const Data = z
  .unknown()
  .superRefine(refine({ isPatch: false }))
  .meta({
    type: 'object',
    description: `${dataRule} \`label\` and \`summary\`, if there, are strings of up to ${labelMax} and ${summaryMax} characters; a top-level \`kind\` is refused.`,
  }) as unknown as z.ZodType<CellData, CellData>
/** An RFC 7396 merge patch for data. `label` and `summary` may be null, which removes them. */
export const DataPatch = z
  .unknown()
  .superRefine(refine({ isPatch: true }))
  .meta({
    type: 'object',
    description: 'A JSON merge patch: keys with null are removed.',
  }) as unknown as z.ZodType<CellData, CellData>

/** Compares in code points; checks the cheap bound first. */
const longerThan = (text: string, max: number): boolean => text.length > max && [...text].length > max

/** RFC 7396. The result has no prototype, so that `__proto__` is an ordinary key. */
export function mergePatch(target: unknown, patch: CellData): CellData {
  const merged: CellData = Object.assign(Object.create(null), isData(target) ? target : {})
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key]
    else merged[key] = isData(value) ? mergePatch(merged[key], value) : value
  }
  return merged
}

/** JSON equality: key order does not matter, `1` equals `1.0`. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const keys = Object.keys(a)
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && sameJson((a as CellData)[key], (b as CellData)[key]))
  )
}
