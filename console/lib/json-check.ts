import { type JsonObject, stepOf } from './json.ts'

/** What is wrong with a text that is to become the data of a cell, with offsets into the text. */
export type Problem = { from: number; to: number } & (
  | { kind: 'expected'; what: Expected }
  | { kind: 'not_object' | 'kind_inside' }
  | { kind: 'duplicate_key' | 'unsafe_number'; text: string }
  | { kind: 'too_large' | 'too_deep'; size: number }
)
export type Expected = 'value' | 'key' | 'colon' | 'comma' | 'end' | 'string'
/** The place of the value of each JSON pointer. */
type Places = Map<string, { from: number; to: number }>

const bytesMax = 262_144
const depthMax = 64
/** More would only repeat the same. */
const problemsMax = 50

/** The data, or why the service would refuse it or store something other than what was typed. */
export function checkData(text: string): { data: JsonObject } | { problems: Problem[] } {
  const problems = scan(text)
  if (problems.length > 0) return { problems }
  const data: JsonObject = JSON.parse(text)
  const size = new TextEncoder().encode(JSON.stringify(data)).length
  return size > bytesMax ? { problems: [{ kind: 'too_large', size, from: 0, to: 0 }] } : { data }
}

/** The start and end of the value at a path of keys; if it is missing, of the nearest existing one. */
export function placeOf(text: string, path: readonly unknown[]): { from: number; to: number } {
  const places: Places = new Map()
  scan(text, places)
  for (let length = path.length; length >= 0; length--) {
    const found = places.get(path.slice(0, length).map(stepOf).join(''))
    if (found && length > 0) return found
  }
  return { from: 0, to: 0 }
}

const token = new RegExp(
  [
    String.raw`[ \t\n\r]*(?:("[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\u0000-\u001f]*)*")`,
    String.raw`(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])`,
    String.raw`(true|false|null)(?!\w)`,
    String.raw`([{}[\],:]))`,
  ].join('|'),
  'y',
)

type Frame = { keys: Set<string> | null; pointer: string; key: string; index: number; from: number }

/** Reads the text once, as strictly as `JSON.parse` does; reports nothing after the first syntax error. */
function scan(text: string, places?: Places): Problem[] {
  const problems: Problem[] = []
  const open: Frame[] = []
  let wanted = 'value' as Expected
  let mayClose = false
  let at = 0
  const tell = (problem: Problem): void => void (problems.length < problemsMax && problems.push(problem))
  const pointerOf = (frame: Frame | undefined): string =>
    frame ? frame.pointer + stepOf(frame.keys ? frame.key : frame.index) : ''
  const afterValue = (from: number, to: number): void => {
    places?.set(pointerOf(open.at(-1)), { from, to })
    wanted = open.length > 0 ? 'comma' : 'end'
    mayClose = true
  }
  for (;;) {
    token.lastIndex = at
    const found = token.exec(text)
    if (!found) break
    const [, string, number, word, sign] = found
    const written = (string ?? number ?? word ?? sign) as string
    const to = token.lastIndex
    const from = to - written.length
    const frame = open.at(-1)
    if (sign && '}]'.includes(sign)) {
      if (!frame || !mayClose || (sign === '}') !== (frame.keys !== null)) break
      open.pop()
      afterValue(frame.from, to)
    } else if (wanted === 'comma' && sign === ',' && frame) {
      frame.index++
      wanted = frame.keys ? 'key' : 'value'
      mayClose = false
    } else if (wanted === 'colon' && sign === ':') wanted = 'value'
    else if (wanted === 'key' && string && frame?.keys) {
      const key: string = JSON.parse(string)
      if (frame.keys.has(key)) tell({ kind: 'duplicate_key', text: key, from, to })
      if (open.length === 1 && key === 'kind') tell({ kind: 'kind_inside', from, to })
      frame.keys.add(key)
      frame.key = key
      wanted = 'colon'
      mayClose = false
    } else if (wanted === 'value' && sign !== ',' && sign !== ':') {
      if (open.length === 0 && sign !== '{') tell({ kind: 'not_object', from, to })
      if (number && !isExact(number)) tell({ kind: 'unsafe_number', text: number, from, to })
      if (sign) {
        if (open.length === depthMax) return [{ kind: 'too_deep', size: depthMax + 1, from, to }]
        open.push({
          keys: sign === '{' ? new Set() : null,
          pointer: pointerOf(frame),
          key: '',
          index: 0,
          from,
        })
        wanted = sign === '{' ? 'key' : 'value'
        mayClose = true
      } else afterValue(from, to)
    } else break
    at = to
  }
  const left = /[^ \t\n\r][^\s{}[\],:]*/.exec(text.slice(at))
  if (!left && wanted === 'end') return problems
  const from = left ? at + left.index : text.length
  const what = text[from] === '"' && (wanted === 'value' || wanted === 'key') ? 'string' : wanted
  problems.unshift({ kind: 'expected', what, from, to: from + (left?.[0].length ?? 0) })
  return problems
}

/** Integers up to 2^53, and other numbers that a double does not turn into infinity. */
const isExact = (text: string): boolean =>
  /^-?\d+$/.test(text) ? Number.isSafeInteger(Number(text)) : Number.isFinite(Number(text))
