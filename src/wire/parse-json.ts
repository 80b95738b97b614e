/**
 * `JSON.parse` as it is specified. V8 from 13.6 (Node 24) on takes some keys that have an escape for others: after
 * `{"a":1,"\\":2}` it reads `{"a":1,"\n":2}` as `{"a":1,"\\":2}`, also if that came from somebody else. Throws SyntaxError.
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  return takesKeysForOthers && text.includes('\\') ? exact(text, value) : value
}

const takesKeysForOthers = ((): boolean => {
  JSON.parse('{"of this engine":0,"\\\\":0}')
  return Object.hasOwn(JSON.parse('{"of this engine":0,"\\n":0}'), '\\')
})()

/** Begins every stand-in. Nobody else knows it, so no text has it. */
const mark = crypto.randomUUID().slice(-8)

/** What a JSON text can only hold with an escape. */
const escapes = /["\\]|[^ -\uffff]/

/** Parses a valid text whose keys that have escapes are written without, or, where they need one, as stand-ins. */
function exact(text: string, value: unknown): unknown {
  const keys = [...escapedKeys(text)]
  if (keys.length === 0) return value
  // In one list, as decoding one by one takes many times as long.
  const names: string[] = JSON.parse(`[${keys.map(([start, end]) => text.slice(start, end)).join()}]`)
  const standIns = new Map<string, string>()
  const written = (name: string): string => {
    if (!escapes.test(name)) return name
    const standIn = standIns.get(name) ?? `${mark}${standIns.size}`
    standIns.set(name, standIn)
    return standIn
  }
  const pieces: string[] = []
  let done = 0
  for (const [nth, [start, end]] of keys.entries()) {
    pieces.push(text.slice(done, start), '"', written(names[nth] as string), '"')
    done = end
  }
  const parsed: unknown = JSON.parse(pieces.join('') + text.slice(done))
  return standIns.size === 0 ? parsed : renamed(parsed, [...standIns.keys()])
}

const [quote, backslash] = [0x22, 0x5c]
const colon = /[ \t\r\n]*:/y

/** Where the keys with escapes are, with their quotes. */
function* escapedKeys(text: string): Generator<[start: number, end: number]> {
  for (let start = text.indexOf('"'), end = 0; start >= 0; start = text.indexOf('"', end)) {
    let hasEscape = false
    for (end = start + 1; text.charCodeAt(end) !== quote; end++)
      if (text.charCodeAt(end) === backslash) {
        hasEscape = true
        end++
      }
    end++
    colon.lastIndex = end
    if (hasEscape && colon.test(text)) yield [start, end]
  }
}

/** Not recursive: a text may nest as deep as it is long. */
function renamed(value: unknown, names: readonly string[]): unknown {
  const root = { value }
  const open: object[] = [root]
  const own = (child: unknown): unknown => {
    if (typeof child !== 'object' || child === null) return child
    const renamed = Array.isArray(child) ? child : withNames(child, names)
    open.push(renamed)
    return renamed
  }
  for (let parent = open.pop(); parent; parent = open.pop())
    if (Array.isArray(parent)) for (let i = 0; i < parent.length; i++) parent[i] = own(parent[i])
    else for (const key in parent) assign(parent, key, own((parent as Record<string, unknown>)[key]))
  return root.value
}

function withNames(sent: object, names: readonly string[]): object {
  let isRenamed = false
  for (const key in sent) if (key.startsWith(mark)) isRenamed = true
  if (!isRenamed) return sent
  const own = {}
  for (const key in sent)
    assign(
      own,
      key.startsWith(mark) ? (names[Number(key.slice(mark.length))] as string) : key,
      (sent as Record<string, unknown>)[key],
    )
  return own
}

function assign(to: object, key: string, value: unknown): void {
  // Assigned, `__proto__` would not become a key.
  if (key === '__proto__')
    Object.defineProperty(to, key, { value, writable: true, enumerable: true, configurable: true })
  else (to as Record<string, unknown>)[key] = value
}
