/** Where each entry of the history was scrolled to; the browser's own memory gives up before the data have come. */

const restMs = 200
/** How long the data may take. */
const waitMs = 10_000
let rest: ReturnType<typeof setTimeout> | undefined
let pending: AbortController | undefined

export function keepTop(): void {
  clearTimeout(rest)
  if (!pending) history.replaceState({ ...history.state, top: scrollY }, '')
}

/** Another entry is shown now: nothing that is due concerns it. */
export function forgetTop(): void {
  clearTimeout(rest)
  pending?.abort()
}

/** Scrolls to where this entry was once the page is long enough, unless somebody scrolls meanwhile. */
export function restoreTop(): void {
  forgetTop()
  const top: number = history.state?.top ?? 0
  const own = new AbortController()
  pending = own
  own.signal.addEventListener('abort', () => {
    if (pending === own) pending = undefined
  })
  for (const one of ['wheel', 'touchmove', 'pointerdown', 'keydown'])
    addEventListener(one, () => own.abort(), { signal: own.signal, passive: true })
  const end = performance.now() + waitMs
  const step = (): void => {
    if (own.signal.aborted) return
    scrollTo(0, top)
    if (scrollY >= top - 1 || performance.now() > end) own.abort()
    else requestAnimationFrame(step)
  }
  requestAnimationFrame(() => requestAnimationFrame(step))
}

export function startScroll(): void {
  history.scrollRestoration = 'manual'
  addEventListener(
    'scroll',
    () => {
      clearTimeout(rest)
      rest = setTimeout(keepTop, restMs)
    },
    { passive: true },
  )
  addEventListener('beforeunload', keepTop)
  restoreTop()
}
