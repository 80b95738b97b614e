import type { Cell, Columns, Phrase } from '../core/operation.ts'
import { printable } from '../log/text.ts'
import type { CommandIo } from './io.ts'

/** What a command says on standard output: text for eyes, or with `--json` one JSON object per line. */
export type Output = {
  readonly json: boolean
  result(result: Record<string, unknown>, phrase: Phrase): void
  /** Rows as they come, page by page; `none` is said where there is none. */
  table(
    pages: AsyncIterable<readonly Row[]> | readonly Row[],
    columns: Columns<Row>,
    none: string,
  ): Promise<void>
}

export type Row = Readonly<Record<string, Cell>>

export function createOutput({ stdout }: Pick<CommandIo, 'stdout'>, json: boolean): Output {
  const line = (value: unknown): void => void stdout.write(`${JSON.stringify(value)}\n`)
  return {
    json,
    result: (result, phrase) => {
      if (json) return line(result)
      for (const part of [phrase].flat() as (string | Row)[])
        stdout.write(
          typeof part === 'string'
            ? `${part.split('\n').map(printable).join('\n')}\n`
            : aligned(Object.entries(part).map(([label, cell]) => [label, shown(cell)])),
        )
    },
    table: async (pages, columns, none) => {
      const titles = Object.keys(columns)
      const reads = Object.values(columns).map((read) =>
        typeof read === 'string' ? (row: Row) => row[read] as Cell : read,
      )
      let widths: number[] | undefined
      for await (const page of 'length' in pages ? [pages] : pages) {
        if (json) page.forEach(line)
        if (json || page.length === 0) continue
        const rows = page.map((row) => reads.map((read) => shown(read(row))))
        const isFirst = widths === undefined
        widths = columnWidths(isFirst ? [titles, ...rows] : rows, widths)
        stdout.write(aligned(isFirst ? [titles, ...rows] : rows, widths))
      }
      if (!json && widths === undefined) stdout.write(`${none}\n`)
    },
  }
}

/** Columns as wide as their longest cell, at least `widths`; the last one is not padded. */
export function aligned(rows: readonly (readonly string[])[], widths?: readonly number[]): string {
  const wide = columnWidths(rows, widths)
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(wide[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

/** A value of unusual length takes its line alone. */
const widest = 64

function columnWidths(rows: readonly (readonly string[])[], least: readonly number[] = []): number[] {
  return (rows[0] ?? []).map((_, column) =>
    Math.max(
      least[column] ?? 0,
      ...rows.map((row) => row[column]?.length ?? 0).filter((length) => length <= widest),
    ),
  )
}

const shown = (cell: Cell): string => (cell === null || cell === '' ? '-' : printable(String(cell)))

/** Every page of an operator call that answers in pages. */
export async function* pagesOf<T>(
  read: (cursor: string | null) => Promise<{ rows: readonly T[]; next_cursor: string | null }>,
): AsyncIterable<readonly T[]> {
  for (let cursor: string | null = null; ; ) {
    const { rows, next_cursor }: { rows: readonly T[]; next_cursor: string | null } = await read(cursor)
    yield rows
    if (next_cursor === null) return
    cursor = next_cursor
  }
}
