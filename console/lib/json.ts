export type Json = null | boolean | number | string | Json[] | JsonObject
export type JsonObject = { [key: string]: Json }

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Compares by value; the order of keys does not count. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((one, index) => isSame(one, b[index]))
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && isSame(a[key], b[key]))
  )
}

/** The step of a JSON pointer. */
export const stepOf = (key: unknown): string => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`

/** `undefined`: absent on that side. */
export type Change = { pointer: string; before: Json | undefined; after: Json | undefined }

/** What differs, object by object; arrays count as one value. */
export function diff(before: Json | undefined, after: Json | undefined, pointer = ''): Change[] {
  if (isSame(before, after)) return []
  if (!isObject(before) || !isObject(after)) return [{ pointer, before, after }]
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return keys.flatMap((key) => diff(own(before, key), own(after, key), pointer + stepOf(key)))
}

const own = (of: JsonObject, key: string): Json | undefined => (Object.hasOwn(of, key) ? of[key] : undefined)

export type Conflict = {
  pointer: string
  base: Json | undefined
  theirs: Json | undefined
  mine: Json | undefined
}

/**
 * Applies the changes of both sides to `base`. If both changed the same value in different ways, `choose` decides; what
 * it was asked is in `conflicts`.
 */
export function merge(
  base: Json | undefined,
  theirs: Json | undefined,
  mine: Json | undefined,
  choose: (conflict: Conflict) => 'theirs' | 'mine',
  pointer = '',
): { merged: Json | undefined; conflicts: Conflict[] } {
  if (isSame(theirs, mine) || isSame(base, mine)) return { merged: theirs, conflicts: [] }
  if (isSame(base, theirs)) return { merged: mine, conflicts: [] }
  if (!isObject(theirs) || !isObject(mine)) {
    const conflict = { pointer, base, theirs, mine }
    return { merged: choose(conflict) === 'mine' ? mine : theirs, conflicts: [conflict] }
  }
  const common = isObject(base) ? base : {}
  const keys = [...new Set([...Object.keys(theirs), ...Object.keys(mine)])]
  const parts = keys.map((key) => {
    const part = merge(own(common, key), own(theirs, key), own(mine, key), choose, pointer + stepOf(key))
    return { key, ...part }
  })
  const kept = parts.filter(({ merged }) => merged !== undefined)
  return {
    merged: Object.fromEntries(kept.map(({ key, merged }) => [key, merged as Json])),
    conflicts: parts.flatMap(({ conflicts }) => conflicts),
  }
}
