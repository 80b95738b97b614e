import { createHash } from 'node:crypto'
import pg from 'pg'

/** A composable SQL template: values become parameters, nested fragments are spliced in. */

export type Sql = { readonly chunks: readonly string[]; readonly values: readonly unknown[] }

const isSql = (part: unknown): part is Sql =>
  typeof part === 'object' && part !== null && 'chunks' in part && 'values' in part

/**
 * Builds a statement or a fragment: `` sql`select ${columns} from cell where id = ${id}::uuid` ``.
 * A part that is itself `Sql` is spliced in, everything else is sent as a parameter.
 */
export function sql(strings: TemplateStringsArray, ...parts: unknown[]): Sql {
  const chunks = [strings[0] as string]
  const values: unknown[] = []
  parts.forEach((part, index) => {
    const after = strings[index + 1] as string
    const last = chunks.length - 1
    if (isSql(part)) {
      chunks[last] = `${chunks[last]}${part.chunks[0]}`
      chunks.push(...part.chunks.slice(1))
      chunks[chunks.length - 1] = `${chunks[chunks.length - 1]}${after}`
      values.push(...part.values)
    } else {
      chunks.push(after)
      values.push(part)
    }
  })
  return { chunks, values }
}

/** Literal SQL text written by us, such as a column list or a page size; never caller input. */
sql.raw = (text: string | number): Sql => ({ chunks: [String(text)], values: [] })

sql.empty = sql.raw('')

sql.join = (parts: readonly Sql[], separator: string): Sql =>
  parts.reduce(
    (all, part, index) => (index === 0 ? part : sql`${all}${sql.raw(separator)}${part}`),
    sql.empty,
  )

/** The form that the driver takes: numbered parameters and the name of the prepared statement. */
export function compile(query: Sql): { name: string; text: string; values: unknown[] } {
  const text = textOf(query)
  return { name: statementName(text), text, values: [...query.values] }
}

/** The same for a statement that is not prepared under a name. */
export const nameless = (query: Sql): { text: string; values: unknown[] } => ({
  text: textOf(query),
  values: [...query.values],
})

function textOf({ chunks }: Sql): string {
  let text = chunks[0] as string
  for (let i = 1; i < chunks.length; i++) text += `$${i}${chunks[i]}`
  return text
}

/**
 * Names for prepared statements: a connection parses and plans each named text once. A name is a digest of its text:
 * behind a pooler that hands connections round, the same name never means the statement of another process.
 * The process keeps this many; beyond that the clock algorithm evicts a text that was not used since the hand
 * last passed it. So a flood of rare texts never evicts the common ones.
 */
const namesMax = 300

type Named = { text: string; name: string; isUsed: boolean }

const named = new Map<string, Named>()
const ring: Named[] = []
let hand = 0
let given = 0

function statementName(text: string): string {
  const known = named.get(text)
  if (known) {
    known.isUsed = true
    return known.name
  }
  given += 1
  const digest = createHash('sha256').update(text).digest('hex')
  const made = { text, name: `ck_${digest.slice(0, 20)}`, isUsed: false }
  named.set(text, made)
  if (ring.length < namesMax) ring.push(made)
  else {
    for (let one = ring[hand] as Named; one.isUsed; one = ring[hand] as Named) {
      one.isUsed = false
      hand = (hand + 1) % namesMax
    }
    named.delete((ring[hand] as Named).text)
    ring[hand] = made
    hand = (hand + 1) % namesMax
  }
  return made.name
}

/** For each connection, how many names had been assigned when it was opened. */
const openedAt = new WeakMap<object, number>()

export const noteOpened = (client: object): void => void openedAt.set(client, given)

/**
 * True if so many names were assigned since the connection was opened that it may hold twice `namesMax`
 * statements. The unused ones would take memory of the database for as long as the connection lives.
 */
export const isWornOut = (client: object): boolean => given - (openedAt.get(client) ?? given) > namesMax

/** Turns PostgreSQL's `2026-01-02 03:04:05.6+00` into the wire form `2026-01-02T03:04:05.600Z`. */
function isoTimestamp(text: string): string {
  const fraction = text.slice(19, -3) || '.'
  return `${text.slice(0, 10)}T${text.slice(11, 19)}${fraction.slice(0, 4).padEnd(4, '0')}Z`
}

/** Type parsers for all connections; with them a selected row is already the wire object. */
export const timeTypes: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => {
    if (oid === pg.types.builtins.TIMESTAMPTZ) return isoTimestamp
    if (oid === pg.types.builtins.INT8) return Number
    return pg.types.getTypeParser(oid, format)
  },
}
