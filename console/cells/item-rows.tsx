import { useEffect, useRef, useState } from 'preact/hooks'
import { CellLink } from '../api/cell-name.tsx'
import { cells } from '../copy/cells.ts'
import { words } from '../copy/common.ts'
import { Icon } from '../ui/icon.tsx'
import { Menu } from '../ui/menu.tsx'
import type { Item, useItemChanges } from './item-changes.ts'

type Changes = ReturnType<typeof useItemChanges>
type Lifted = { from: number; to: number }
/** The window scrolls this near to its edge. */
const edge = 64

/**
 * Items that can be moved by their handle, with a pointer or with keys, or by their menu. While one is lifted only its
 * look changes: an element that moves in the document would lose the focus and the pointer.
 */
export function ItemRows({ rows, changes }: { rows: readonly Item[]; changes: Changes | null }) {
  const own = useRef<HTMLOListElement>(null)
  const [lifted, draw] = useState<Lifted | null>(null)
  // Handlers read the state here, because events come faster than rows are drawn.
  const held = useRef<Lifted | null>(null)
  const lift = (to: Lifted | null): void => {
    held.current = to
    draw(to)
  }
  const [said, say] = useState('')
  const focusOn = useRef<string | null>(null)
  useEffect(() => {
    if (focusOn.current === null) return
    const row = own.current?.querySelector(`[data-position="${focusOn.current}"]`)
    row?.querySelector<HTMLElement>('.handle')?.focus()
    if (row) focusOn.current = null
  })
  const order = rows.map(({ position }) => position).join()
  // Somebody else moved one, so the lifted one may be elsewhere now.
  useEffect(() => cancel(), [order])
  const drop = (): void => {
    if (!held.current) return
    const { from, to } = held.current
    lift(null)
    say(cells.dropped(to + 1, rows.length))
    if (to !== from) focusOn.current = changes?.move(rows, from, to) ?? null
  }
  const cancel = (): void => {
    if (!held.current) return
    say(cells.not_moved(held.current.from + 1, rows.length))
    lift(null)
  }
  const moveTo = (from: number, to: number): void => {
    const kept = Math.max(0, Math.min(to, rows.length - 1))
    lift({ from, to: kept })
    say(cells.moved(kept + 1, rows.length))
  }
  const onKeyDown = (event: KeyboardEvent, index: number): void => {
    const { key } = event
    const now = held.current
    if (!now && key !== ' ') return
    const steps: Record<string, number> = { ArrowUp: -1, ArrowDown: 1, Home: -rows.length, End: rows.length }
    if (!now) {
      lift({ from: index, to: index })
      say(cells.lifted(index + 1, rows.length))
    } else if (key === ' ') drop()
    else if (key === 'Escape') cancel()
    else if (steps[key]) moveTo(now.from, now.to + steps[key])
    else return
    event.preventDefault()
  }
  const onPointerMove = ({ clientY }: PointerEvent): void => {
    const now = held.current
    if (!now) return
    const boxes = [...(own.current?.children ?? [])].map((one) => one.getBoundingClientRect())
    const above = boxes.filter((box, index) => index !== now.from && (box.top + box.bottom) / 2 < clientY)
    if (above.length !== now.to) moveTo(now.from, above.length)
    if (clientY < edge) scrollBy(0, -16)
    else if (clientY > innerHeight - edge) scrollBy(0, 16)
  }
  return (
    <>
      <ol ref={own} class="list items">
        {rows.map((item, index) => (
          <li
            key={item.position}
            data-position={item.position}
            class={lifted?.from === index ? 'is-lifted' : undefined}
            style={{ '--order': shownAt(index, lifted) }}
          >
            {changes && (
              <button
                type="button"
                class="handle"
                aria-label={cells.handle(index + 1, rows.length)}
                aria-pressed={lifted?.from === index}
                onKeyDown={(event) => onKeyDown(event, index)}
                onBlur={cancel}
                onPointerDown={(event) => {
                  if (event.button) return
                  event.currentTarget.setPointerCapture(event.pointerId)
                  lift({ from: index, to: index })
                }}
                onPointerMove={onPointerMove}
                onPointerUp={drop}
                onPointerCancel={cancel}
              >
                <Icon name="grip-vertical" />
              </button>
            )}
            <span class="soft">{shownAt(index, lifted) + 1}</span>
            <span class="grow">
              <CellLink id={item.child_id} />
            </span>
            {changes && (
              <Menu
                label={words.more_actions}
                items={[
                  ...(index > 0
                    ? [{ label: cells.move_up, onClick: () => void changes.move(rows, index, index - 1) }]
                    : []),
                  ...(index < rows.length - 1
                    ? [{ label: cells.move_down, onClick: () => void changes.move(rows, index, index + 1) }]
                    : []),
                  { label: cells.remove, onClick: () => changes.remove(rows, index) },
                ]}
              />
            )}
          </li>
        ))}
      </ol>
      <div role="status" aria-live="assertive" class="hidden-text">
        {said}
      </div>
    </>
  )
}

/** Where a row is shown while one is lifted. */
function shownAt(index: number, lifted: Lifted | null): number {
  if (!lifted) return index
  if (index === lifted.from) return lifted.to
  const without = index > lifted.from ? index - 1 : index
  return without >= lifted.to ? without + 1 : without
}
