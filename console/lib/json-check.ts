import { isObject, type Json, type JsonObject } from './json.ts'

/** What is wrong with a text that is to become the data of a cell. */
export type Problem =
  | { kind: 'invalid'; message: string }
  | { kind: 'not_object' | 'kind_inside' }
  | { kind: 'duplicate_key' | 'unsafe_number'; text: string }
  | { kind: 'too_large' | 'too_deep'; size: number }

const bytesMax = 262_144
const depthMax = 64

/** The data, or why the service would refuse it or store something else than was typed. */
export function checkData(text: string): { data: JsonObject } | { problem: Problem } {
  let data: Json
  try {
    data = JSON.parse(text)
  } catch (error) {
    return { problem: { kind: 'invalid', message: (error as Error).message } }
  }
  if (!isObject(data)) return { problem: { kind: 'not_object' } }
  if (Object.hasOwn(data, 'kind')) return { problem: { kind: 'kind_inside' } }
  const lost = lostIn(text)
  if (lost) return { problem: lost }
  const size = new TextEncoder().encode(JSON.stringify(data)).length
  if (size > bytesMax) return { problem: { kind: 'too_large', size } }
  const depth = depthOf(data)
  return depth > depthMax ? { problem: { kind: 'too_deep', size: depth } } : { data }
}

const depthOf = (value: Json): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...levels(value)) : 0
const levels = (value: Json[] | JsonObject): number[] => {
  let deepest = 0
  for (const one of Object.values(value)) deepest = Math.max(deepest, depthOf(one))
  return [deepest]
}

const token = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[{}[\],:]/g

/** A key that is there twice, or a number that a double cannot hold: `JSON.parse` would change both silently. */
function lostIn(text: string): Problem | undefined {
  const open: (Set<string> | null)[] = []
  let before = ''
  for (const [found] of text.matchAll(token)) {
    if (found === '{') open.push(new Set())
    else if (found === '[') open.push(null)
    else if (found === '}' || found === ']') open.pop()
    else if (found.startsWith('"')) {
      const keys = open.at(-1)
      if (keys && (before === '{' || before === ',')) {
        const key: string = JSON.parse(found)
        if (keys.has(key)) return { kind: 'duplicate_key', text: key }
        keys.add(key)
      }
    } else if (/\d/.test(found) && !isExact(found)) return { kind: 'unsafe_number', text: found }
    before = found
  }
  return undefined
}

/** Integers up to 2^53, and whatever prints back as it was written. */
const isExact = (text: string): boolean =>
  /^-?\d+$/.test(text) ? Number.isSafeInteger(Number(text)) : Number.isFinite(Number(text))
