import { type Sql, sql } from './sql.ts'

/**
 * JSON text made by the database, for results that are sent unchanged. `||` is faster than `concat`, and takes half the
 * time of `json_build_object`.
 */

/** How a column becomes JSON: `word` has no character that JSON escapes, `plain` is a number or `jsonb`. */
type Form = 'word' | 'text' | 'time' | 'plain'
/** A `?` marks a column that may be null. Without it a null would make the whole text null. */
export type JsonColumns = Readonly<Record<string, Form | `${Form}?`>>

const forms: Record<Form, { before?: string; value(column: string): string; behind?: string }> = {
  word: { before: '"', value: (column) => column, behind: '"' },
  text: { value: (column) => `to_json(${column})::text` },
  time: {
    // Times have whole milliseconds. An added microsecond makes the fraction always six digits long; varchar keeps
    // three.
    value: (column) => `to_json(${column} at time zone interval '0' + interval '1us')::text::varchar(24)`,
    behind: 'Z"',
  },
  plain: { value: (column) => `${column}::text` },
}

/** The row with this alias as the text of an object, by as few `||` as possible, because they take most of the time. */
export function jsonObject(alias: string, columns: JsonColumns): Sql {
  const parts: string[] = []
  let literal = '{'
  for (const [name, form] of Object.entries(columns)) {
    const { before = '', value, behind = '' } = forms[form.replace('?', '') as Form]
    const column = value(`${alias}.${name}`)
    literal += `${parts.length > 0 ? ',' : ''}"${name}":`
    if (form.endsWith('?')) {
      const end = behind && ` || '${behind}'`
      parts.push(`coalesce('${literal}${before}' || ${column}${end}, '${literal}null')`)
      literal = ''
    } else {
      parts.push(`'${literal}${before}'`, column)
      literal = behind
    }
  }
  return sql.raw([...parts, `'${literal}}'`].join(' || '))
}

/** The same columns by themselves. */
export const columnsOf = (alias: string, columns: JsonColumns): Sql =>
  sql.raw(
    Object.keys(columns)
      .map((name) => `${alias}.${name}`)
      .join(', '),
  )

/** An aggregate: the texts as the text of an array, empty if there is none. */
export const jsonArray = (text: Sql, order = sql.empty): Sql =>
  sql`'[' || coalesce(string_agg(${text}, ',' ${order}), '') || ']'`
