/**
 * If the page removes the focused element, such as the row of something deleted, a heading gets the focus: that of the
 * topmost dialog, or of the page. A browser would start again at the top and announce nothing.
 */
export function keepFocus(): void {
  let last: EventTarget | null = null
  addEventListener('focusin', ({ target }) => void (last = target))
  addEventListener('pointerdown', () => void (last = null), true)
  new MutationObserver(() => {
    if (!(last instanceof HTMLElement) || last.isConnected || document.activeElement !== document.body) return
    last = null
    const dialog = [...document.querySelectorAll('dialog[open]')].at(-1)
    const heading = dialog?.querySelector('h2') ?? document.querySelector('h1')
    if (!heading) return
    heading.tabIndex = -1
    heading.focus({ preventScroll: true })
  }).observe(document.body, { childList: true, subtree: true })
}
