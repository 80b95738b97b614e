import { statementName } from './statement-names.ts'

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
  const { chunks, values } = query
  let text = chunks[0] as string
  for (let i = 1; i < chunks.length; i++) text += `$${i}${chunks[i]}`
  return { name: statementName(text), text, values: [...values] }
}
