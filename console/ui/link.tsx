import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

/** The link of a row: its whole area opens it. */
export const RowLink = ({ href, children }: { href: string; children: ComponentChildren }) => (
  <a class="row-link" href={href}>
    {children}
  </a>
)

export type Tab = { href: string; label: string; count?: number | string | undefined; isCurrent: boolean }

/** The title of the browser's tab, which tells the parts of a page apart; the first one is the page. */
export function titleOf(page: string, tabs: readonly Tab[]): string {
  const part = tabs.slice(1).find(({ isCurrent }) => isCurrent)
  return part ? `${part.label}, ${page}` : page
}

/** Parts of a page, each with an address of its own. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  const own = useRef<HTMLElement>(null)
  const at = tabs.findIndex(({ isCurrent }) => isCurrent)
  // On a phone the current tab may be outside the visible part.
  useLayoutEffect(() => {
    const [nav, current] = [own.current, own.current?.children[at] as HTMLElement | undefined]
    if (nav && current) nav.scrollLeft = current.offsetLeft + current.offsetWidth / 2 - nav.clientWidth / 2
  }, [at])
  return (
    <nav class="tabs" aria-label={label} ref={own}>
      {tabs.map(({ href, label, count, isCurrent }) => (
        <a key={href} href={href} aria-current={isCurrent ? 'page' : undefined}>
          {label}
          {count !== undefined && <span class="badge">{count}</span>}
        </a>
      ))}
    </nav>
  )
}
