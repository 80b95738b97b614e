import { signal } from '@preact/signals'
import { isAdmin, signedIn } from './api/session.ts'
import { keys as copy } from './copy/common.ts'
import { remembered } from './lib/remembered.ts'
import { go, to } from './lib/router.ts'
import { nextTheme } from './lib/theme.ts'
import { nav } from './routes.ts'

/** Whether the list of shortcuts is open. */
export const isHelpOpen = signal(false)
export const isPaletteOpen = signal(false)
/** `off`: no single key works, for people whom that would hinder, such as those who dictate to their computer. */
export const singleKeys = remembered('keys')

type Shortcut = {
  id: string
  /** As shown; a single one equals `event.key`. */
  keys: readonly string[]
  label: string
  /**
   * Returns false if there was nothing to do, so that the browser may use the key. Absent: the focused widget handles
   * it.
   */
  run?: () => unknown
}

/** Clicks the element of the page that offers this key. */
const clicks = (key: string) => (): boolean => {
  const found = document.querySelector<HTMLElement>(`main [aria-keyshortcuts="${key}"]`)
  found?.click()
  return found !== null
}
const focuses = (selector: string) => (): boolean => {
  const found = document.querySelector<HTMLElement>(selector)
  found?.focus()
  return found !== null
}
const firstRow = (): boolean => !document.activeElement?.matches('.row-link') && focuses('main .row-link')()
const copyId = (): boolean => {
  const row = document.activeElement?.closest('[role=row], li')
  const id =
    row?.querySelector<HTMLElement>('.id') ?? document.querySelector<HTMLElement>('main .page-head .id')
  id?.click()
  return id !== null
}
const back = (): boolean => {
  const link = document.querySelector<HTMLElement>('main .page-back')
  link?.click()
  return link !== null
}

/** Every shortcut that there is, as `?` lists them. */
export const shortcuts: readonly Shortcut[] = [
  { id: 'palette', keys: ['Ctrl', 'K'], label: copy.palette },
  { id: 'submit', keys: ['Ctrl', 'Enter'], label: copy.submit },
  { id: 'save', keys: ['Ctrl', 'S'], label: copy.save },
  { id: 'search', keys: ['/'], label: copy.search, run: focuses('main input[type=search]') },
  { id: 'down', keys: ['j'], label: copy.next_row, run: firstRow },
  { id: 'up', keys: ['k'], label: copy.previous_row, run: firstRow },
  { id: 'open', keys: ['Enter'], label: copy.open },
  { id: 'back', keys: ['Escape'], label: copy.back, run: back },
  { id: 'new', keys: ['n'], label: copy.new, run: clicks('n') },
  { id: 'edit', keys: ['e'], label: copy.edit, run: clicks('e') },
  { id: 'share', keys: ['s'], label: copy.share, run: clicks('s') },
  { id: 'role', keys: ['r'], label: copy.give_role, run: clicks('r') },
  { id: 'pause', keys: ['p'], label: copy.pause, run: clicks('p') },
  { id: 'copy', keys: ['c'], label: copy.copy_id, run: copyId },
  { id: 'lift', keys: ['Space'], label: copy.lift },
  { id: 'theme', keys: ['t'], label: copy.theme, run: nextTheme },
  { id: 'help', keys: ['?'], label: copy.help, run: () => (isHelpOpen.value = true) },
]

/** Also in shadow roots, where the target of the event is only their host. */
const isTyping = (event: KeyboardEvent): boolean => {
  const target = event.composedPath()[0]
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  )
}

/** Submits the form of the topmost dialog, or confirms it; by its button, which may be disabled or busy. */
function submitDialog(): void {
  const dialog = [...document.querySelectorAll('dialog[open]')].at(-1)
  const form = dialog?.querySelector('form')
  const button = form?.querySelector<HTMLElement>('[type=submit]')
  if (button) button.click()
  else if (form) form.requestSubmit()
  else dialog?.querySelector<HTMLElement>('.dialog-foot .button:last-child')?.click()
}

const save = clicks('Control+S Meta+S')
const withControl: Readonly<Record<string, () => unknown>> = {
  enter: submitDialog,
  k: () => (isPaletteOpen.value = true),
  s: () => document.querySelector('dialog[open]') === null && save(),
}

/** What a key stands for; where a keyboard writes another script, the Latin letter in its place. */
function keyOf({ key, code }: KeyboardEvent): string {
  const [, letter] = /^Key([A-Z])$/.exec(code) ?? []
  return letter && /^[^ -~]$/.test(key) ? letter.toLowerCase() : key
}

let isAfterG = false
let forget: ReturnType<typeof setTimeout> | undefined

export function startKeys(): void {
  addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.altKey || !signedIn.value) return
    const key = keyOf(event)
    if (event.ctrlKey || event.metaKey) {
      // A capital letter without Shift: Caps Lock is on.
      const run = withControl[event.shiftKey ? key : key.toLowerCase()]
      if (run && run() !== false) event.preventDefault()
      return
    }
    if (isTyping(event) || document.querySelector('dialog[open], [popover=auto]:popover-open')) return
    if (singleKeys.value === 'off' && key !== 'Escape') return
    if (isAfterG) {
      isAfterG = false
      const entry = nav.find((one) => one.letter === key && (!one.admin || isAdmin.value))
      if (entry) go(to(entry.path))
      return
    }
    if (key === 'g') {
      isAfterG = true
      clearTimeout(forget)
      forget = setTimeout(() => {
        isAfterG = false
      }, 1500)
      return
    }
    const found = shortcuts.find(({ keys, run }) => run && keys[0] === key)
    if (found?.run && found.run() !== false) event.preventDefault()
  })
}
