import { observeWindowOffset, Virtualizer, windowScroll } from '@tanstack/virtual-core'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
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
  const { items, height } = useRows(own, isVirtual, rows, keyOf)
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (hasMore && last > rows.length - 80) more?.()
  }, [hasMore, last, rows.length])

  const row = (one: T, index: number, offset?: number) => (
    <div
      key={keyOf(one)}
      role="row"
      class="table-row"
      aria-rowindex={index + 2}
      data-index={index}
      style={offset === undefined ? undefined : { transform: `translateY(${offset}px)` }}
    >
      {columns.map(({ head, cell, label, end }) => (
        <div key={head} role="cell" class={end ? 'is-end' : undefined} data-label={label}>
          {cell(one)}
        </div>
      ))}
    </div>
  )
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
        {isVirtual
          ? items.map(({ index, start }) => row(rows[index] as T, index, start))
          : rows.map((one, index) => row(one, index))}
      </div>
      {isVirtual && <div class="loaded">{words.loaded(rows.length)}</div>}
    </div>
  )
}

type Item = { index: number; start: number }

/** The rows on screen of a window that scrolls; a phone's cards have other heights, which are measured. */
function useRows<T>(
  own: { current: HTMLDivElement | null },
  isVirtual: boolean,
  rows: readonly T[],
  keyOf: (row: T) => string,
): { items: Item[]; height: number } {
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
        overscan: 12,
      } as never),
  )
  virtual.setOptions({
    ...virtual.options,
    count: isVirtual ? rows.length : 0,
    getItemKey: (index) => keyOf(rows[index] as T),
    scrollMargin: own.current ? own.current.getBoundingClientRect().top + scrollY : 0,
  })
  useEffect(() => virtual._didMount(), [])
  useEffect(() => {
    virtual._willUpdate()
    for (const element of own.current?.querySelectorAll<HTMLElement>('[data-index]') ?? [])
      if (isVirtual) virtual.measureElement(element)
  })
  if (!isVirtual) return { items: [], height: 0 }
  const margin = virtual.options.scrollMargin
  return {
    items: virtual.getVirtualItems().map(({ index, start }) => ({ index, start: start - margin })),
    height: virtual.getTotalSize(),
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
