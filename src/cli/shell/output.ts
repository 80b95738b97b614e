import type { Environment } from '../../config/reading.ts'
import type { Cell, Phrase, Table } from '../../core/operation.ts'
import type { Clock } from '../../db/clock.ts'
import { printable } from '../../log/text.ts'

/** The parts of the process that a command may use. */
export type CommandIo = {
  stdin: NodeJS.ReadableStream & { isTTY?: boolean; setRawMode?(raw: boolean): unknown }
  stdout: { write(text: string): unknown; isTTY?: boolean }
  stderr: { write(text: string): unknown; isTTY?: boolean }
  env: Environment
  cwd: string
  /**
   * Aborted when standard output takes no more, with the code of the error: its reader stopped (EPIPE), or its disk is
   * full, of which the user has been told by then.
   */
  cut?: AbortSignal
  /** Gives this process a lower priority than all others. */
  yield?(): Promise<void>
}

/** Standard output of a command: text for people, or with `--json` one JSON object per line. */
export type Output = {
  readonly json: boolean
  result(result: Record<string, unknown>, phrase: Phrase): void
  /** Prints rows page by page as they arrive, or `none` if there are no rows. */
  table(
    pages: AsyncIterable<readonly Row[]> | readonly Row[],
    table: Table<Row>,
    clock: Pick<Clock, 'now'>,
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
    table: async (pages, { columns, none }, clock) => {
      const titles = Object.keys(columns)
      const reads = Object.values(columns).map((read) =>
        typeof read === 'string' ? (row: Row) => row[read] as Cell : read,
      )
      let widths: number[] | undefined
      for await (const page of 'length' in pages ? [pages] : pages) {
        if (json) page.forEach(line)
        if (json || page.length === 0) continue
        const now = clock.now()
        const rows = page.map((row) => reads.map((read) => shown(read(row, now))))
        const isFirst = widths === undefined
        widths = columnWidths(isFirst ? [titles, ...rows] : rows, widths)
        stdout.write(aligned(isFirst ? [titles, ...rows] : rows, widths))
      }
      if (!json && widths === undefined) stdout.write(`${none}\n`)
    },
  }
}

/** Pads columns to their longest cell, and at least to `widths`. */
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

/** Longer values don't widen their column. */
const widest = 64

function columnWidths(rows: readonly (readonly string[])[], min: readonly number[] = []): number[] {
  return (rows[0] ?? []).map((_, column) =>
    Math.max(
      min[column] ?? 0,
      ...rows.map((row) => row[column]?.length ?? 0).filter((length) => length <= widest),
    ),
  )
}

const shown = (cell: Cell): string => (cell === null || cell === '' ? '-' : printable(String(cell)))

/** Every page of a paginated operation. */
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
