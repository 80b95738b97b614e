import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { RowHeights } from '../lib/row-heights.ts'

/** `top`: the offset of a row that is kept although it is far from those on screen. */
export type Place = { index: number; top?: number }
export type Drawn = { places: readonly Place[]; before: number; height: number }
type Own = { current: HTMLElement | null }

/** The number of rows drawn above and below those on screen. */
const around = 6
const restMs = 150

/**
 * The rows of a list that are drawn while the window scrolls. They lie in the flow, with space for the others before
 * and after them: a step of a scroll only lays out the new rows, and one observer reports all heights.
 */
export function useWindowRows(
  own: Own,
  isVirtual: boolean,
  rows: readonly unknown[],
  keyOf: (index: number) => string,
): Drawn {
  const [, draw] = useState(0)
  const [view] = useState(() => new WindowRows(own, () => draw((times) => times + 1)))
  const fitted = useRef<readonly unknown[]>(null)
  if (isVirtual && fitted.current !== rows) {
    fitted.current = rows
    view.fit(rows.length, keyOf)
  }
  useLayoutEffect(() => (isVirtual ? view.start() : undefined), [isVirtual])
  useLayoutEffect(() => view.afterDrawing())
  return isVirtual ? view.drawn() : { places: rows.map((_, index) => ({ index })), before: 0, height: 0 }
}

class WindowRows {
  #own: Own
  #draw: () => void
  #heights = new RowHeights()
  #first = 0
  /** The row after the last one. */
  #end = 0
  /** The last measured rows: the first, and the one after the last. */
  #measured: readonly [first: number, end: number] = [0, 0]
  #width = 0
  /**
   * How far the rows are above their right place, because rows above turned out to have another height. What is visible
   * stays in place until the window is at rest: setting its offset would end a fling.
   */
  #drift = 0
  #isSettling = false
  /** The number of rows when the End key was pressed; rows that turn out to be higher move the end away meanwhile. */
  #endOf: number | null = null
  #rest: ReturnType<typeof setTimeout> | undefined

  constructor(own: Own, draw: () => void) {
    this.#own = own
    this.#draw = draw
  }

  fit(count: number, keyOf: (index: number) => string): void {
    this.#heights.fit(count, keyOf)
    this.#look()
  }

  /** Follows the window until the returned function is called. */
  start(): () => void {
    const follow = (): void => {
      if (this.#look()) this.#draw()
      if (this.#endOf !== null) this.#waitForRest()
    }
    const hearKey = ({ key, target }: KeyboardEvent): void => {
      const isTyping = target instanceof HTMLElement && target.matches('input, textarea, select')
      this.#endOf = key === 'End' && !isTyping ? this.#heights.count : null
      if (this.#endOf !== null) this.#waitForRest()
    }
    const letGo = (): void => void (this.#endOf = null)
    const observer = new ResizeObserver(([entry]) => {
      if (entry) this.#measure([...entry.target.children], entry.contentRect.width)
      // Other rows at once would change the height within one turn of the observer.
      requestAnimationFrame(follow)
    })
    observer.observe(this.#own.current as HTMLElement)
    addEventListener('scroll', follow, { passive: true })
    addEventListener('resize', follow)
    addEventListener('keydown', hearKey)
    for (const one of ['wheel', 'pointerdown']) addEventListener(one, letGo, { passive: true })
    follow()
    return () => {
      observer.disconnect()
      removeEventListener('scroll', follow)
      removeEventListener('resize', follow)
      removeEventListener('keydown', hearKey)
      for (const one of ['wheel', 'pointerdown']) removeEventListener(one, letGo)
      clearTimeout(this.#rest)
    }
  }

  drawn(): Drawn {
    const [first, end] = [this.#first, this.#end]
    const drift = this.#isSettling ? 0 : this.#drift
    const shown = Array.from({ length: end - first }, (_, nth): Place => ({ index: first + nth }))
    const kept = this.#kept().map((index): Place => ({ index, top: this.#heights.start(index) - drift }))
    return {
      places: kept.length > 0 ? [...shown, ...kept].toSorted((a, b) => a.index - b.index) : shown,
      before: Math.max(0, this.#heights.start(first) - drift),
      height: this.#heights.total - drift,
    }
  }

  afterDrawing(): void {
    // Puts rows that were drawn without the drift where they were visible.
    if (this.#isSettling) {
      scrollBy(0, this.#drift)
      this.#drift = 0
      this.#isSettling = false
    }
    const [first, end] = this.#measured
    this.#measured = [this.#first, this.#end]
    const rows = [...(this.#own.current?.children ?? [])]
    if (this.#width > 0) this.#measure(rows.filter((row) => indexOf(row) < first || indexOf(row) >= end))
  }

  /** Chooses the rows; returns whether there is something to draw. */
  #look(isAtRest = false): boolean {
    const offset = this.#offset()
    const [top, bottom] = [this.#heights.at(offset), this.#heights.at(offset + innerHeight)]
    // After a leap only the visible rows are drawn at once.
    const isLeap = !isAtRest && (top >= this.#end || bottom < this.#first)
    const more = isLeap ? 0 : around
    const [first, end] = [Math.max(0, top - more), Math.min(this.#heights.count, bottom + 1 + more)]
    const isOther = first !== this.#first || end !== this.#end
    this.#first = first
    this.#end = end
    if (this.#drift !== 0 && (isAtRest || first === 0)) this.#isSettling = true
    else if (this.#drift !== 0 || isLeap) this.#waitForRest()
    return isOther || this.#isSettling
  }

  #waitForRest(): void {
    clearTimeout(this.#rest)
    this.#rest = setTimeout(() => {
      const isOther = this.#look(true)
      if (isOther) this.#draw()
      if (this.#endOf !== null) this.#goOnToEnd(isOther)
    }, restMs)
  }

  #goOnToEnd(isMoving: boolean): void {
    const { scrollHeight } = document.documentElement
    const isThere = scrollY + innerHeight >= scrollHeight - 1
    // If the list has grown meanwhile, the end as it was is meant.
    if (this.#endOf !== this.#heights.count || (isThere && !isMoving)) {
      this.#endOf = null
      return
    }
    scrollTo(0, scrollHeight)
    this.#waitForRest()
  }

  /** The offset of the upper edge of the window within the list; 0 for a list that is not in the document yet. */
  #offset(): number {
    return this.#drift - (this.#own.current?.getBoundingClientRect().top ?? 0)
  }

  /** Stores the heights of rows; what is visible stays in place. */
  #measure(rows: readonly Element[], width = this.#width): void {
    if (rows.length === 0) return
    const sizes = rows.map((row) => [indexOf(row), row.getBoundingClientRect().height] as const)
    const top = this.#heights.at(this.#offset())
    const before = this.#heights.start(top)
    if (width !== this.#width) {
      this.#width = width
      const inOrder = sizes.map(([, size]) => size).toSorted((a, b) => a - b)
      this.#heights.forget(inOrder[inOrder.length >> 1] ?? 40)
    }
    for (const [index, size] of sizes) this.#heights.set(index, size)
    const change = this.#heights.start(top) - before
    if (change === 0) return
    this.#drift += change
    this.#draw()
  }

  /** The focused row and its neighbours, if they are not drawn otherwise. */
  #kept(): number[] {
    const row = document.activeElement?.closest('[role=row]')
    if (!row || !this.#own.current?.contains(row)) return []
    const index = indexOf(row)
    return [index - 1, index, index + 1].filter(
      (one) => one >= 0 && one < this.#heights.count && (one < this.#first || one >= this.#end),
    )
  }
}

const indexOf = (row: Element): number => Number(row.getAttribute('aria-rowindex')) - 2
