import { signal } from '@preact/signals'
import { isAdmin, signedIn } from './api/session.ts'
import { go, to } from './lib/router.ts'
import { nextTheme } from './lib/theme.ts'
import { nav } from './routes.ts'

/** Whether the list of shortcuts is open. */
export const isHelpOpen = signal(false)

let isAfterG = false

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

/** Single keys; none counts in a field or a dialog. */
export function startKeys(): void {
  addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !signedIn.value) return
    if (isTyping(event.target) || document.querySelector('dialog[open]')) return
    const { key } = event
    if (isAfterG) {
      isAfterG = false
      const entry = nav.find((one) => one.letter === key && (!one.admin || isAdmin.value))
      if (entry) go(to(entry.path))
      return
    }
    if (key === 'g') {
      isAfterG = true
      setTimeout(() => {
        isAfterG = false
      }, 1500)
    } else if (key === '?') isHelpOpen.value = true
    else if (key === 't') nextTheme()
    else if (key === '/') {
      const search = document.querySelector<HTMLElement>('main input[type=search]')
      if (!search) return
      event.preventDefault()
      search.focus()
    } else if (key === 'n') document.querySelector<HTMLElement>('main [data-new]')?.click()
  })
}
