import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { words } from '../copy/common.ts'
import { Text } from './text.tsx'

const step = 100
const longest = 500

/** JSON as a tree: two levels open, a hundred entries at a time, long texts cut. One stop for Tab, arrows within. */
export function Tree({ label, of }: { label: string; of: unknown }) {
  const own = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (!own.current) return
    const [first] = itemsOf(own.current)
    if (first && !own.current.querySelector('[tabindex="0"]')) first.tabIndex = 0
  })
  if (!isBranch(of) || sizeOf(of) === 0)
    return (
      <div class="tree" role="group" aria-label={label}>
        <Leaf of={of} />
      </div>
    )
  return (
    <div ref={own} class="tree" role="tree" aria-label={label} onKeyDown={onKey} onFocusIn={becomeStop}>
      <Entries of={of} level={1} />
    </div>
  )
}

type Branch = unknown[] | Record<string, unknown>
const isBranch = (of: unknown): of is Branch => typeof of === 'object' && of !== null
const sizeOf = (of: Branch): number => (Array.isArray(of) ? of.length : Object.keys(of).length)

const itemsOf = (tree: HTMLElement): HTMLElement[] => [
  ...tree.querySelectorAll<HTMLElement>('[role=treeitem]'),
]
const levelOf = (item: HTMLElement): number => Number(item.ariaLevel)

function becomeStop({ currentTarget, target }: FocusEvent): void {
  for (const item of (currentTarget as HTMLElement).querySelectorAll<HTMLElement>('[tabindex="0"]'))
    item.tabIndex = -1
  ;(target as HTMLElement).tabIndex = 0
}

/** The keys of a tree, as in lists of files. */
function onKey(event: KeyboardEvent): void {
  const at = event.target as HTMLElement
  if (event.ctrlKey || event.metaKey || event.altKey) return
  const items = itemsOf(event.currentTarget as HTMLElement)
  const index = items.indexOf(at)
  const isOpen = at.ariaExpanded
  const parent = items.slice(0, index).findLast((item) => levelOf(item) < levelOf(at))
  const moves: Record<string, () => void> = {
    ArrowDown: () => items[index + 1]?.focus(),
    ArrowUp: () => items[index - 1]?.focus(),
    Home: () => items[0]?.focus(),
    End: () => items.at(-1)?.focus(),
    Enter: () => at.click(),
    ' ': () => at.click(),
    ArrowRight: () => (isOpen === 'false' ? at.click() : isOpen && items[index + 1]?.focus()),
    ArrowLeft: () => (isOpen === 'true' ? at.click() : parent?.focus()),
  }
  const move = moves[event.key]
  if (!move) return
  event.preventDefault()
  move()
}

function Entries({ of, level }: { of: Branch; level: number }) {
  const [shown, show] = useState(step)
  const keys = Object.keys(of)
  const left = keys.length - shown
  const own = useRef<HTMLUListElement>(null)
  useEffect(() => {
    // The row that asked for more is now below them, or gone.
    if (shown > step)
      own.current?.children[shown - step]?.querySelector<HTMLElement>('[role=treeitem]')?.focus()
  }, [shown])
  return (
    <ul ref={own} role={level > 1 ? 'group' : 'none'}>
      {keys.slice(0, shown).map((key, index) => (
        <Entry
          key={key}
          name={key}
          of={(of as Record<string, unknown>)[key]}
          place={{ level, index, count: keys.length }}
          isIndex={Array.isArray(of)}
        />
      ))}
      {left > 0 && (
        <Item place={{ level, index: shown, count: keys.length }} onClick={() => show(shown + step)}>
          <span class="link">{words.more_of(Math.min(step, left), left)}</span>
        </Item>
      )}
    </ul>
  )
}

type Place = { level: number; index: number; count: number }

const Item = (props: {
  place: Place
  isOpen?: boolean
  onClick?: () => void
  children: ComponentChildren
  below?: ComponentChildren
}) => (
  <li role="none">
    {/* biome-ignore lint/a11y/useKeyWithClickEvents: the tree hears the keys */}
    <div
      role="treeitem"
      class="tree-row"
      tabIndex={-1}
      aria-level={props.place.level}
      aria-posinset={props.place.index + 1}
      aria-setsize={props.place.count}
      aria-expanded={props.isOpen}
      onClick={props.onClick}
    >
      {props.children}
    </div>
    {props.below}
  </li>
)

function Entry({ name, of, place, isIndex }: { name: string; of: unknown; place: Place; isIndex: boolean }) {
  const [isOpen, open] = useState(place.level < 2)
  const shownName = (
    <span class={isIndex ? 'tree-index' : 'tree-key'}>{isIndex ? name : <Text>{name}</Text>}</span>
  )
  if (!isBranch(of) || sizeOf(of) === 0)
    return (
      <Item place={place}>
        {shownName}
        <Leaf of={of} />
      </Item>
    )
  return (
    <Item
      place={place}
      isOpen={isOpen}
      onClick={() => open(!isOpen)}
      below={isOpen && <Entries of={of} level={place.level + 1} />}
    >
      {shownName}
      <span class="soft">{Array.isArray(of) ? `[${sizeOf(of)}]` : `{${sizeOf(of)}}`}</span>
    </Item>
  )
}

function Leaf({ of }: { of: unknown }) {
  if (typeof of === 'string') {
    const isCut = of.length > longest
    return (
      <span class="tree-text">
        <Text long>{isCut ? `${of.slice(0, longest)} …` : of}</Text>
      </span>
    )
  }
  return <span class="tree-value">{isBranch(of) ? (Array.isArray(of) ? '[]' : '{}') : String(of)}</span>
}
