import { computed, signal } from '@preact/signals'
import { forgetTop, keepTop, restoreTop, startScroll } from './scroll.ts'
import { isUuid } from './uuid.ts'

/** The address below `/admin`: its path, and the query that a link should restore. */
export const place = signal(here())
export const path = computed(() => place.value.path)

const base = '/admin'

function here(): { path: string; query: URLSearchParams } {
  return {
    path: location.pathname.replace(/^\/admin\/?/, '/'),
    query: new URLSearchParams(location.search),
  }
}

/** The href of a page of the console. */
export const to = (path: string, query: Record<string, string | null | undefined> = {}): string => {
  const kept = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) if (value) kept.set(key, value)
  return `${base}${path === '/' ? '' : path}${kept.size ? `?${kept}` : ''}`
}

/** `asks`: called before the page is left; false stays. `back`: called when Back has left the page, to return to it. */
export const leaveGuard: { readonly asks: Set<() => boolean>; back?: (() => void) | undefined } = {
  asks: new Set(),
}
/** How often Back or Forward has changed the page. */
export const movesBack = { count: 0 }

/** Opens a page. `replace`: Back does not return to the current one. `isSaved`: what was typed here needs no question. */
export function go(href: string, { replace = false, isSaved = false } = {}): void {
  if (!replace && !isSaved && ![...leaveGuard.asks].every((ask) => ask())) return
  keepTop()
  forgetTop()
  // After a double click, Back would seem to do nothing.
  const isHere = new URL(href, location.href).href === location.href
  history[replace || isHere ? 'replaceState' : 'pushState']({}, '', href)
  const before = place.peek().path
  place.value = here()
  if (before !== place.peek().path) scrollTo(0, 0)
  keepTop()
}

/** Changes keys of the query in place: filters, an open dialog. */
export const setQuery = (changes: Record<string, string | null>): void => {
  const query = new URLSearchParams(location.search)
  for (const [key, value] of Object.entries(changes))
    if (value) query.set(key, value)
    else query.delete(key)
  go(`${location.pathname}${query.size ? `?${query}` : ''}`, { replace: true })
}

/** Makes links of the console change the page without loading it, and Back and Forward return to where it was. */
export function startRouter(): void {
  startScroll()
  addEventListener('popstate', () => {
    forgetTop()
    if (leaveGuard.back) return leaveGuard.back()
    movesBack.count++
    place.value = here()
    restoreTop()
  })
  addEventListener('click', (event) => {
    if (
      event.defaultPrevented ||
      event.button ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return
    const link = (event.target as Element | null)?.closest?.('a')
    if (!link || link.target || link.origin !== location.origin || link.hasAttribute('download')) return
    if (link.pathname !== base && !link.pathname.startsWith(`${base}/`)) return
    if (link.hash && link.pathname === location.pathname) return
    event.preventDefault()
    go(link.href)
  })
}

/**
 * The parameters of a path by a pattern such as `/people/:id/:tab(tokens|offers)`; undefined if it does not match. `id`
 * is a UUID.
 */
export function match(pattern: string, path: string): Record<string, string> | undefined {
  const [wanted, sent] = [pattern.split('/'), path.replace(/(.)\/$/, '$1').split('/')]
  if (wanted.length !== sent.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    const own = sent[index] as string
    const [, name, choice = '.*'] = /^:(\w+)(?:\((.+)\))?$/.exec(part) ?? []
    if (!name ? part !== own : name === 'id' ? !isUuid(own) : !new RegExp(`^(?:${choice})$`).test(own))
      return undefined
    if (name) params[name] = own
  }
  return params
}

/** Where to go after signing in: only within this origin. */
export function safeTarget(sent: string | null, home: string): string {
  if (!sent) return home
  try {
    const { origin, protocol, pathname, search, hash } = new URL(sent, location.origin)
    // A path that begins with two slashes would name another host.
    return origin === location.origin && /^https?:$/.test(protocol) && !pathname.startsWith('//')
      ? pathname + search + hash
      : home
  } catch {
    return home
  }
}
