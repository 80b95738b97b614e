import { type Machine, machineLine } from './machine.ts'
import { short, table } from './numbers.ts'
import type { Case } from './scale-cases.ts'
import type { TimingRow } from './scale-timing.ts'
import type { Compared } from './turns.ts'

export type Row = Omit<Case, 'params' | 'against'> &
  Compared & {
    /** Statements of one call in the large world, including the session lookup and the transaction. */
    statements: number
    plan?: string
  }
export type ScaleRun = {
  machine: Machine
  sizes: { small: number; large: number }
  rows: Row[]
  refusals: TimingRow[]
  /** Cases that failed or for which no time was left. */
  skipped: string[]
}

/** A page that the small world cannot fill is judged by time: its ratio would compare numbers of rows. */
const unlikeMs = 10

/** On a shared machine one call in a hundred takes some ten milliseconds in any world; below this, tails mean nothing. */
const hiccupMs = 15

/** Over its bar by the medians; a list also by the 99th percentiles. */
export const isOver = (row: Row): boolean =>
  isAbove(row, 'median', row.ratio) ||
  (row.method === 'cell_list' && row.large.p99 > hiccupMs && isAbove(row, 'p99', row.tail))

function isAbove({ bar, small, large, targetMs = 0 }: Row, of: 'median' | 'p99', ratio: number): boolean {
  return ratio > bar && large[of] > (small.rows < large.rows ? Math.max(targetMs, unlikeMs) : targetMs)
}

/** The page of a run: the bar first, then every filter, then the cases over the bar with their plans. */
export function scaleReport({ machine, sizes, rows, refusals, skipped }: ScaleRun): string {
  const lists = rows.filter(({ method }) => method === 'cell_list')
  const points = rows.filter(({ method }) => method !== 'cell_list')
  const over = rows.filter(isOver)
  const worst = (some: readonly Row[]): string =>
    some.length === 0 ? '–' : short(Math.max(...some.map(({ ratio }) => ratio)))
  const callers = [...new Set(lists.map(({ caller }) => caller))]
  const filters = [...new Set(lists.map(({ filter }) => filter))]
  const plain = lists.filter(({ filter }) => filter === 'none')
  return `${[
    `# ${sizes.large} cells against ${sizes.small}`,
    `Written by \`npm run bench:scale\`: medians in the large world ÷ medians in the small one, and
the same of the 99th percentiles, which count from ${hiccupMs} ms on. The bar of lists is 3, or 5 beyond 1 M cells. First page of 50 rows, page 200 of 10 rows. In process, fsync off, data in memory.`,
    '## Lists without a filter',
    table(
      ['Caller, order, page', 'ratio', 'p99 ratio', 'small ms', 'large ms', 'large p99 ms', 'rows'],
      plain.map((row) => [`${row.caller}, ${row.order}, ${page(row)}`, ...figures(row)]),
    ),
    '## Each filter: the worst ratio of both orders and pages',
    table(
      ['Filter', ...callers],
      filters.map((filter) => [
        filter,
        ...callers.map((caller) =>
          worst(lists.filter((row) => row.filter === filter && row.caller === caller)),
        ),
      ]),
    ),
    '## Point reads and writes',
    table(
      ['Call', 'ratio', 'p99 ratio', 'small ms', 'large ms', 'large p99 ms', 'rows', 'statements'],
      points.map((row) => [row.name, ...figures(row), String(row.statements)]),
    ),
    '## Refusals: hidden against missing cells, in the large world',
    table(
      ['Caller', 'samples', 'hidden, median ms', 'missing, median ms', 'z', 'p'],
      refusals.map(({ name, samples, hidden, missing, z, p }) => [
        name,
        String(samples),
        ...[hidden, missing, z].map((value) => value.toFixed(3)),
        p.toFixed(4),
      ]),
    ),
    `## Over the bar: ${over.length} of ${rows.length}`,
    over.length === 0
      ? 'None.'
      : table(
          ['Case', 'ratio', 'p99 ratio', 'small ms', 'large ms', 'large p99 ms', 'rows'],
          over.map((row) => [row.name, ...figures(row)]),
        ),
    ...over.filter(({ plan }) => plan).map(({ name, plan }) => `### ${name}\n\n\`\`\`\n${plan}\n\`\`\``),
    ...(skipped.length > 0 ? [`Not measured: ${skipped.join('; ')}.`] : []),
    machineLine(machine),
  ].join('\n\n')}\n`
}

const page = ({ isDeep }: Row): string => (isDeep ? 'page 200' : 'first')

const figures = ({ ratio, tail, small, large }: Row): string[] => [
  short(ratio),
  short(tail),
  short(small.median),
  short(large.median),
  short(large.p99),
  `${small.rows} / ${large.rows}`,
]
