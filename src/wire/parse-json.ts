/**
 * `JSON.parse` as specified. V8 from 13.6 (Node 24) on confuses some keys that have an escape with keys of texts parsed
 * before, even of another caller: after `{"a":1,"\\":2}` it reads `{"a":1,"\n":2}` as `{"a":1,"\\":2}`. Throws
 * SyntaxError.
 */
export function parseJson(text: string): unknown {
  return takesKeysForOthers && text.includes('\\') ? exact(text) : JSON.parse(text)
}

const takesKeysForOthers = ((): boolean => {
  JSON.parse('{"of this engine":0,"\\\\":0}')
  return Object.hasOwn(JSON.parse('{"of this engine":0,"\\n":0}'), '\\')
})()

/** The start of every stand-in: random, so that no text contains it, and no number, as objects list numbers first. */
const mark = `~${crypto.randomUUID().slice(-8)}`

/** Characters that a JSON text can contain only as an escape. */
const escapes = /["\\]|[^ -\uffff]/

/**
 * Parses a text in which keys with escapes are replaced: by the key without escapes, or, if it needs one, by a
 * stand-in. An invalid text stays invalid.
 */
function exact(text: string): unknown {
  const keys = escapedKeys(text)
  if (keys.length === 0) return JSON.parse(text)
  // In one list, because decoding one by one takes many times as long.
  const names: string[] = JSON.parse(`[${keys.map(([start, end]) => text.slice(start, end)).join()}]`)
  const standIns = new Map<string, string>()
  const written = (name: string): string => {
    if (!escapes.test(name)) return name
    const known = standIns.get(name)
    if (known !== undefined) return known
    const standIn = `${mark}${standIns.size}`
    standIns.set(name, standIn)
    return standIn
  }
  const pieces: string[] = []
  let done = 0
  for (const [nth, [start, end]] of keys.entries()) {
    // The quotes stay, because fewer pieces are joined faster.
    pieces.push(text.slice(done, start + 1), written(names[nth] as string))
    done = end - 1
  }
  pieces.push(text.slice(done))
  const parsed: unknown = JSON.parse(pieces.join(''))
  return standIns.size === 0 ? parsed : renamed(parsed, [...standIns.keys()])
}

const [quote, backslash] = [0x22, 0x5c]
const colon = /[ \t\r\n]*:/y

/** Positions of the keys with escapes, quotes included. The text may be invalid. */
function escapedKeys(text: string): [start: number, end: number][] {
  const keys: [start: number, end: number][] = []
  for (let start = text.indexOf('"'), end = 0; start >= 0; start = text.indexOf('"', end)) {
    let hasEscape = false
    for (end = start + 1; text.charCodeAt(end) !== quote; end++) {
      if (end >= text.length) return keys
      if (text.charCodeAt(end) === backslash) {
        hasEscape = true
        end++
      }
    }
    end++
    colon.lastIndex = end
    if (hasEscape && colon.test(text)) keys.push([start, end])
  }
  return keys
}

/**
 * Not recursive, because a text may nest as deep as it is long. Each key is written once, because there may be very
 * many.
 */
function renamed(value: unknown, names: readonly string[]): unknown {
  const root = { value }
  const open: object[] = [root]
  for (let parent = open.pop(); parent; parent = open.pop())
    for (const key of Array.isArray(parent) ? parent.keys() : Object.keys(parent)) {
      const child = (parent as Record<PropertyKey, unknown>)[key]
      if (typeof child !== 'object' || child === null) continue
      const own = Array.isArray(child) ? child : withNames(child, names)
      if (own !== child) assign(parent, key, own)
      open.push(own)
    }
  return root.value
}

function withNames(sent: object, names: readonly string[]): object {
  const keys = Object.keys(sent)
  if (!keys.some((key) => key.startsWith(mark))) return sent
  const own = {}
  for (const key of keys)
    assign(
      own,
      key.startsWith(mark) ? (names[Number(key.slice(mark.length))] as string) : key,
      (sent as Record<string, unknown>)[key],
    )
  return own
}

function assign(to: object, key: string | number, value: unknown): void {
  // An assignment to `__proto__` would not make a key.
  if (key === '__proto__')
    Object.defineProperty(to, key, { value, writable: true, enumerable: true, configurable: true })
  else (to as Record<PropertyKey, unknown>)[key] = value
}
