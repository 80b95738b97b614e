import { useState } from 'preact/hooks'
import { words } from '../copy/common.ts'
import { Text } from './text.tsx'

const step = 100
const longest = 500

/** JSON as a tree: two levels open, a hundred entries at a time, long texts cut. */
export const Tree = ({ label, of }: { label: string; of: unknown }) => (
  <div class="tree" role="group" aria-label={label}>
    {isBranch(of) ? <Entries of={of} depth={0} /> : <Leaf of={of} />}
  </div>
)

type Branch = unknown[] | Record<string, unknown>
const isBranch = (of: unknown): of is Branch => typeof of === 'object' && of !== null
const sizeOf = (of: Branch): number => (Array.isArray(of) ? of.length : Object.keys(of).length)

function Entries({ of, depth }: { of: Branch; depth: number }) {
  const [shown, show] = useState(step)
  const keys = Object.keys(of)
  const left = keys.length - shown
  return (
    <ul>
      {keys.slice(0, shown).map((key) => (
        <li key={key}>
          <Entry
            name={key}
            of={(of as Record<string, unknown>)[key]}
            depth={depth}
            isIndex={Array.isArray(of)}
          />
        </li>
      ))}
      {left > 0 && (
        <li>
          <button type="button" class="button is-small" onClick={() => show(shown + step)}>
            {words.more_of(Math.min(step, left), left)}
          </button>
        </li>
      )}
    </ul>
  )
}

function Entry({ name, of, depth, isIndex }: { name: string; of: unknown; depth: number; isIndex: boolean }) {
  const [isOpen, open] = useState(depth < 1)
  const shownName = (
    <span class={isIndex ? 'tree-index' : 'tree-key'}>{isIndex ? name : <Text>{name}</Text>}</span>
  )
  if (!isBranch(of) || sizeOf(of) === 0)
    return (
      <span class="tree-row">
        {shownName}
        <Leaf of={of} />
      </span>
    )
  return (
    <details open={isOpen} onToggle={(event) => open(event.currentTarget.open)}>
      <summary>
        {shownName}
        <span class="soft">{Array.isArray(of) ? `[${sizeOf(of)}]` : `{${sizeOf(of)}}`}</span>
      </summary>
      {isOpen && <Entries of={of} depth={depth + 1} />}
    </details>
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
