/**
 * Where the page removes what has the focus, such as the row of something deleted, its heading gets it: a browser
 * would begin again at the top.
 */
export function keepFocus(): void {
  let last: EventTarget | null = null
  addEventListener('focusin', ({ target }) => void (last = target))
  addEventListener('pointerdown', () => void (last = null), true)
  new MutationObserver(() => {
    if (!(last instanceof HTMLElement) || last.isConnected || document.activeElement !== document.body) return
    last = null
    document.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true })
  }).observe(document.body, { childList: true, subtree: true })
}
