import { signal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { words } from '../copy/common.ts'
import { type Place, useWindowRows } from './window-rows.ts'

export type Column<T> = {
  head: string
  cell(row: T): ComponentChildren
  /** As in `grid-template-columns`; by default an equal share. */
  width?: string
  /** Shown before the value on a phone, where a value alone says too little. */
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

/** Up to this number all rows are drawn, so that the browser's own search finds them. */
const few = 100

/** Paper does not scroll: all loaded rows are drawn. */
const isPrinting = signal(false)
for (const on of [true, false])
  addEventListener(on ? 'beforeprint' : 'afterprint', () => void (isPrinting.value = on))

/** Rows and columns, drawn only if they are on screen; on a phone each row is a card. */
export function DataTable<T>({ label, columns, rows, keyOf, hasMore = false, more }: Props<T>) {
  const grid = columns.map(({ width }) => width ?? 'minmax(0, 1fr)').join(' ')
  const isVirtual = (rows.length > few || hasMore) && !isPrinting.value
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
      <Rows {...{ columns, rows, keyOf, isVirtual, hasMore, more }} />
      {isVirtual && <div class="loaded">{words.loaded(rows.length)}</div>}
    </div>
  )
}

type RowsProps<T> = Pick<Props<T>, 'columns' | 'rows' | 'keyOf' | 'hasMore'> & {
  isVirtual: boolean
  more: (() => void) | undefined
}

/** A component of its own, because rows are drawn with each step of a scroll. */
function Rows<T>({ columns, rows, keyOf, isVirtual, hasMore, more }: RowsProps<T>) {
  const own = useRef<HTMLDivElement>(null)
  const { places, before, height } = useWindowRows(own, isVirtual, rows, (index) => keyOf(rows[index] as T))
  const rowAt = useRowMemo({ columns, rows, keyOf })
  const last = places.at(-1)?.index ?? 0
  useLayoutEffect(() => {
    if (isVirtual && hasMore && last > rows.length - 80) more?.()
  }, [isVirtual, hasMore, last, rows.length])
  return (
    <div
      class={isVirtual ? 'table-window' : undefined}
      style={isVirtual ? { blockSize: `${height}px` } : undefined}
    >
      <div ref={own} role="rowgroup" style={isVirtual ? { paddingBlockStart: `${before}px` } : undefined}>
        {places.map((place) => rowAt(place))}
      </div>
    </div>
  )
}

type Made<T> = Place & { row: T; columns: readonly Column<T>[]; drawn: VNode }

/** A row that was drawn stays the same in the next step of a scroll. */
function useRowMemo<T>({ columns, rows, keyOf }: Pick<Props<T>, 'columns' | 'rows' | 'keyOf'>) {
  const before = useRef(new Map<string, Made<T>>())
  const now = new Map<string, Made<T>>()
  const made = before.current
  before.current = now
  return ({ index, top }: Place): VNode => {
    const row = rows[index] as T
    const key = keyOf(row)
    const old = made.get(key)
    const isSame = old?.row === row && old.columns === columns && old.index === index && old.top === top
    const one =
      old && isSame
        ? old
        : { row, columns, index, top, drawn: <Row key={key} {...{ row, columns, index, top }} /> }
    now.set(key, one)
    return one.drawn
  }
}

const Row = <T,>({ row, columns, index, top }: Omit<Made<T>, 'drawn'>) => (
  <div
    role="row"
    class="table-row"
    aria-rowindex={index + 2}
    style={
      top === undefined ? undefined : { position: 'absolute', insetInline: 0, insetBlockStart: `${top}px` }
    }
  >
    {columns.map(({ head, cell, label, end }) => (
      <div key={head} role="cell" class={end ? 'is-end' : undefined} data-label={label}>
        {cell(row)}
      </div>
    ))}
  </div>
)

/** j and k, or the arrows, move from row to row; the row's link has the focus. */
function moveByKeys(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key]
  const target = event.target as HTMLElement
  if (!step || !target.matches('.row-link')) return
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>('.row-link')]
  const next = links[links.indexOf(target) + step]
  if (!next) return
  event.preventDefault()
  next.focus()
}
