import pg from 'pg'
import { parseJson } from '../wire/parse-json.ts'
import { statementName } from './statement-names.ts'

/**
 * A composable SQL template: values become parameters, nested fragments are spliced in. The text is assembled only when
 * it is first sent, since most templates are sent many times.
 */
export type Sql = {
  readonly [fragment]: true
  readonly strings: readonly string[]
  readonly parts: readonly unknown[]
}

/** No value parsed from JSON has this symbol; every copy of this module shares it. */
const fragment: unique symbol = Symbol.for('cellkeep.sql')

/** A class, because V8 makes objects with a symbol of their own several times as slowly. */
class Fragment implements Sql {
  readonly strings: readonly string[]
  readonly parts: readonly unknown[]

  constructor(strings: readonly string[], parts: readonly unknown[]) {
    this.strings = strings
    this.parts = parts
  }

  get [fragment](): true {
    return true
  }
}

const isSql = (part: unknown): part is Sql => typeof part === 'object' && part !== null && fragment in part

/**
 * Builds a statement or a fragment: `` sql`select ${columns} from cell where id = ${id}::uuid` ``.
 * A part that is itself `Sql` is spliced in, everything else is sent as a parameter.
 */
export const sql = (strings: TemplateStringsArray, ...parts: unknown[]): Sql => new Fragment(strings, parts)

/** Literal SQL text written by us, such as a column list or a page size; never caller input. */
sql.raw = (text: string | number): Sql => new Fragment([String(text)], [])

sql.empty = sql.raw('')

sql.join = (parts: readonly Sql[], separator: string): Sql =>
  new Fragment(between(separator, parts.length), parts)

/** The strings around the parts of a join, by separator and then by the number of parts. */
const joints = new Map<string, (readonly string[])[]>()

/** Returns the same array each time, since `follow` recognises a template by the identity of its strings. */
function between(separator: string, count: number): readonly string[] {
  const known = joints.get(separator) ?? []
  joints.set(separator, known)
  known[count] ??= count === 0 ? [''] : ['', ...Array<string>(count - 1).fill(separator), '']
  return known[count]
}

/** The form that the driver takes: numbered parameters and the name of the prepared statement. */
export function compile(query: Sql): { name: string; text: string; values: unknown[] } {
  const { text, values } = nameless(query)
  return { name: statementName(text), text, values }
}

/** The same for a statement that is not prepared under a name. */
export function nameless(query: Sql): { text: string; values: unknown[] } {
  if (!isSql(query)) throw new TypeError('Write a statement as sql`select …`: it is no plain text.')
  const values: unknown[] = []
  const step = follow(root, query, values)
  if (step.text === undefined) {
    step.text = textOf(query)
    if (++texts > textsMax) [root, texts] = [new Step(), 0]
  }
  return { text: step.text, values }
}

/**
 * A tree of the statements sent so far. The path to a text consists of the strings of its templates, literal texts, and
 * a mark for each parameter, in order; nothing else determines the text.
 */
class Step {
  readonly next = new Map<unknown, Step>()
  text?: string
}

const parameter = Symbol('parameter')
/** Far more than are in use; beyond it the tree begins anew. */
const textsMax = 1000
let texts = 0
let root = new Step()

function follow(from: Step, { strings, parts }: Sql, values: unknown[]): Step {
  let at = stepTo(from, parts.length === 0 ? strings[0] : strings)
  for (const part of parts)
    if (isSql(part)) at = follow(at, part, values)
    else {
      at = stepTo(at, parameter)
      values.push(part)
    }
  return at
}

function stepTo({ next }: Step, key: unknown): Step {
  const known = next.get(key)
  if (known) return known
  const step = new Step()
  next.set(key, step)
  return step
}

function textOf(query: Sql): string {
  let count = 0
  const write = ({ strings, parts }: Sql): string =>
    parts.reduce<string>(
      (text, part, at) => `${text}${isSql(part) ? write(part) : `$${++count}`}${strings[at + 1]}`,
      strings[0] as string,
    )
  return write(query)
}

/** Turns PostgreSQL's `2026-01-02 03:04:05.6+00` into the wire form `2026-01-02T03:04:05.600Z`. */
function isoTimestamp(text: string): string {
  const fraction = text.slice(19, -3) || '.'
  return `${text.slice(0, 10)}T${text.slice(11, 19)}${fraction.slice(0, 4).padEnd(4, '0')}Z`
}

/** Type parsers for all connections; with them a selected row is already the wire object. */
export const wireTypes: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => {
    if (oid === pg.types.builtins.TIMESTAMPTZ) return isoTimestamp
    if (oid === pg.types.builtins.INT8) return Number
    if (oid === pg.types.builtins.JSON || oid === pg.types.builtins.JSONB) return parseJson
    return pg.types.getTypeParser(oid, format)
  },
}
