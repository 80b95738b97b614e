import { observeWindowOffset, Virtualizer, windowScroll } from '@tanstack/virtual-core'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { words } from '../copy/common.ts'

export type Column<T> = {
  head: string
  cell(row: T): ComponentChildren
  /** As in `grid-template-columns`; by default an equal share. */
  width?: string
  /** Before the value on a phone, where a value alone says too little. */
  label?: string
  /** Actions at the end of the row. */
  end?: boolean
}

type Props<T> = {
  label: string
  columns: readonly Column<NoInfer<T>>[]
  rows: readonly T[]
  keyOf(row: T): string
  hasMore?: boolean
  more?: () => void
}

/** Below it all rows are drawn, so that the browser's own search finds them. */
const few = 100

/** Rows and columns, of which only what is on screen is drawn; on a phone each row is a card. */
export function DataTable<T>({ label, columns, rows, keyOf, hasMore = false, more }: Props<T>) {
  const grid = columns.map(({ width }) => width ?? 'minmax(0, 1fr)').join(' ')
  const own = useRef<HTMLDivElement>(null)
  const isVirtual = rows.length > few || hasMore
  const { drawn, height, measure } = useRows(own, isVirtual, rows, keyOf)
  const last = drawn.at(-1)?.index ?? 0
  useLayoutEffect(() => {
    if (hasMore && last > rows.length - 80) more?.()
  }, [hasMore, last, rows.length])

  return (
    <div
      class="table"
      role="table"
      aria-label={label}
      aria-rowcount={hasMore ? -1 : rows.length + 1}
      style={{ '--columns': grid }}
      onKeyDown={moveByKeys}
    >
      <div role="rowgroup">
        <div role="row" class="table-row is-head" aria-rowindex={1}>
          {columns.map(({ head, end }) => (
            <div key={head} role="columnheader">
              {end ? <span class="hidden-text">{head}</span> : head}
            </div>
          ))}
        </div>
      </div>
      <div
        ref={own}
        role="rowgroup"
        class={isVirtual ? 'table-window' : undefined}
        style={isVirtual ? { height: `${height}px` } : undefined}
      >
        {drawn.map(({ index, start }) => {
          const row = rows[index] as T
          return <Row key={keyOf(row)} {...{ row, columns, index, start, measure }} />
        })}
      </div>
      {isVirtual && <div class="loaded">{words.loaded(rows.length)}</div>}
    </div>
  )
}

/** Drawn again only for another row or other columns, not for each step of a scroll. */
function Row<T>({
  row,
  columns,
  index,
  start,
  measure,
}: {
  row: T
  columns: readonly Column<T>[]
  index: number
  start: number | undefined
  measure: Measure | undefined
}) {
  return useMemo(
    () => (
      <div
        ref={measure ?? null}
        role="row"
        class="table-row"
        aria-rowindex={index + 2}
        data-index={index}
        style={start === undefined ? undefined : { top: `${start}px` }}
      >
        {columns.map(({ head, cell, label, end }) => (
          <div key={head} role="cell" class={end ? 'is-end' : undefined} data-label={label}>
            {cell(row)}
          </div>
        ))}
      </div>
    ),
    [row, columns, index, start, measure],
  )
}

type Measure = (element: HTMLElement | null) => void
type Place = { index: number; start?: number }
type Drawn = { drawn: Place[]; height: number; measure?: Measure }

/** The rows on screen of a window that scrolls; a phone's cards have other heights, which are measured. */
function useRows<T>(
  own: { current: HTMLDivElement | null },
  isVirtual: boolean,
  rows: readonly T[],
  keyOf: (row: T) => string,
): Drawn {
  const [, draw] = useState(0)
  const [virtual] = useState(
    () =>
      new Virtualizer<Window, HTMLElement>({
        count: 0,
        getScrollElement: () => window,
        estimateSize: () => 40,
        observeElementRect: (_instance: unknown, hear: (rect: { width: number; height: number }) => void) => {
          const tell = () => hear({ width: innerWidth, height: innerHeight })
          tell()
          addEventListener('resize', tell)
          return () => removeEventListener('resize', tell)
        },
        observeElementOffset: observeWindowOffset,
        scrollToFn: windowScroll,
        onChange: () => draw((count) => count + 1),
        overscan: 6,
      } as never),
  )
  const latest = useRef({ rows, keyOf })
  latest.current = { rows, keyOf }
  // Another function, or another fraction of a pixel, would make it compute the places of all rows again.
  const [getItemKey] = useState(() => (index: number) => {
    const { rows, keyOf } = latest.current
    return keyOf(rows[index] as T)
  })
  virtual.setOptions({
    ...virtual.options,
    count: isVirtual ? rows.length : 0,
    getItemKey,
    scrollMargin: own.current ? Math.round(own.current.getBoundingClientRect().top + scrollY) : 0,
  })
  useEffect(() => virtual._didMount(), [])
  useLayoutEffect(() => {
    virtual.measureElement(null)
    virtual._willUpdate()
  })
  const [measure] = useState(
    () => (element: HTMLElement | null) => element && virtual.measureElement(element),
  )
  if (!isVirtual) return { drawn: rows.map((_, index) => ({ index })), height: 0 }
  const margin = virtual.options.scrollMargin
  return {
    drawn: virtual.getVirtualItems().map(({ index, start }) => ({ index, start: start - margin })),
    height: virtual.getTotalSize(),
    measure,
  }
}

/** j and k, or the arrows, go from row to row; the row's link has the focus. */
function moveByKeys(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key]
  const target = event.target as HTMLElement
  if (!step || !target.matches('.row-link')) return
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>('.row-link')]
  const next = links[links.indexOf(target) + step]
  if (!next) return
  event.preventDefault()
  next.focus()
}
