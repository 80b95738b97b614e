import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { call } from './api/client.ts'
import { sought } from './api/find.ts'
import { cellFinder } from './api/find-cells.ts'
import { acting, isAdmin } from './api/session.ts'
import { palette } from './copy/common.ts'
import type { Refused } from './copy/errors.ts'
import { isPaletteOpen } from './keys.ts'
import { go, to } from './lib/router.ts'
import { isUuid } from './lib/uuid.ts'
import { nav } from './routes.ts'
import { Dialog } from './ui/dialog.tsx'
import { ErrorNote } from './ui/resource.tsx'
import { Text } from './ui/text.tsx'

type Entry = { kind: string; label: string; run(): void; disabled?: string | undefined }
type Found = { entries: Entry[]; error?: Refused | undefined }
type Finder = ReturnType<typeof cellFinder>
const shownMax = 8

/** The actions of the buttons and the menu at the head of the page, as they are when the palette opens. */
const actionsOf = (main: Element | null): Entry[] =>
  [...(main?.querySelectorAll<HTMLElement>('.page-title :is(.button, [role=menuitem])') ?? [])]
    .filter((one) => !one.hasAttribute('popovertarget'))
    .map((one) => ({
      kind: palette.action,
      label: one.querySelector('span')?.textContent || (one.textContent ?? ''),
      disabled: one.ariaDisabled === 'true' ? one.title : undefined,
      run: () => one.click(),
    }))

const pages = (): Entry[] =>
  nav
    .filter((one) => !one.admin || isAdmin.value)
    .map(({ label, path }) => ({ kind: palette.page, label, run: () => go(to(path)) }))

/** People by the beginning of their name, for admins, and cells, which have at least half of the places. */
async function find(text: string, cellsLike: Finder, signal: AbortSignal): Promise<Found> {
  const [people, cells] = await Promise.all([
    sought(() => peopleLike(text, signal)),
    sought(() => cellsLike(text, signal)),
  ])
  const known = cells.found.map(({ id, label, path }) => ({
    kind: palette.cell,
    label: path && path !== label ? `${path} ${label}` : label,
    run: () => go(to(`/cells/${id}`)),
  }))
  const first = people.found.slice(0, shownMax - Math.min(known.length, shownMax / 2))
  return { entries: [...first, ...known], error: people.error ?? cells.error }
}

async function peopleLike(query: string, signal: AbortSignal): Promise<Entry[]> {
  if (!isAdmin.peek() || query.startsWith('/')) return []
  const { accounts } = await call('admin_account_list', { query, limit: shownMax }, acting.peek(), signal)
  return accounts.map(({ account: { id, username } }) => ({
    kind: palette.person,
    label: username,
    run: () => go(to(`/people/${id}`)),
  }))
}

/** What the typed text finds; null until that is known. */
function useFound(text: string): (Found & { again(): void }) | null {
  const [cellsLike] = useState(cellFinder)
  const [found, setFound] = useState<Found & { text: string }>({ text: '', entries: [] })
  const [tries, setTries] = useState(0)
  useEffect(() => {
    if (!text || isUuid(text)) return
    const stop = new AbortController()
    const timer = setTimeout(async () => {
      const found = await find(text, cellsLike, stop.signal)
      if (!stop.signal.aborted) setFound({ text, ...found })
    }, 150)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [text, tries])
  const again = (): void => {
    setFound({ text: '', entries: [] })
    setTries(tries + 1)
  }
  if (!text || isUuid(text)) return { entries: [], again }
  return found.text === text ? { ...found, again } : null
}

/** Goes to any page and runs the actions of this one, from the keyboard: Ctrl or Cmd K. */
export function Palette() {
  const id = useId()
  const [typed, type] = useState('')
  const [at, setAt] = useState(0)
  const input = useRef<HTMLInputElement>(null)
  const [known] = useState(() => [...actionsOf(document.querySelector('main')), ...pages()])
  const text = typed.trim()
  const found = useFound(text)
  const byWord = known.filter(({ label }) => ` ${label.toLowerCase()}`.includes(` ${text.toLowerCase()}`))
  const byId = isUuid(text)
    ? [{ kind: palette.id, label: text, run: () => go(to(`/go/${text.toLowerCase()}`)) }]
    : []
  const shown: Entry[] = [...byId, ...byWord, ...(found?.entries ?? [])].slice(0, shownMax)
  const again = (): void => {
    input.current?.focus()
    found?.again()
  }
  const close = (): void => void (isPaletteOpen.value = false)
  const choose = (one: Entry | undefined): void => {
    if (!one || one.disabled) return
    close()
    // Once the dialog is gone and has returned the focus.
    setTimeout(one.run)
  }
  const step = (by: number): void => setAt((at + by + shown.length) % Math.max(1, shown.length))
  return (
    <Dialog title={palette.title} onClose={close} onSubmit={() => choose(shown[at])}>
      <input
        ref={input}
        class="input"
        role="combobox"
        aria-label={palette.title}
        aria-expanded={shown.length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={shown.length > 0 ? `${id}-${at}` : undefined}
        aria-autocomplete="list"
        autocomplete="off"
        spellcheck={false}
        placeholder={isAdmin.value ? palette.placeholder_admin : palette.placeholder}
        value={typed}
        data-autofocus
        onInput={(event) => {
          type(event.currentTarget.value)
          setAt(0)
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') step(1)
          else if (event.key === 'ArrowUp') step(-1)
          else return
          event.preventDefault()
        }}
      />
      <div id={`${id}-list`} role="listbox" aria-label={palette.title} class="palette-list">
        {shown.map((one, index) => (
          <div
            key={index}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            aria-disabled={one.disabled !== undefined}
            onPointerUp={() => choose(one)}
          >
            <Text>{one.label}</Text>
            <span class="soft">{one.disabled || one.kind}</span>
          </div>
        ))}
      </div>
      <div role="status">
        {shown.length === 0 && found && !found.error && <p class="soft">{palette.nothing}</p>}
      </div>
      {found?.error && <ErrorNote error={found.error} onRetry={again} />}
    </Dialog>
  )
}
