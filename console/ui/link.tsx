import type { ComponentChildren } from 'preact'

/** The link of a row: its whole area opens it. */
export const RowLink = ({ href, children }: { href: string; children: ComponentChildren }) => (
  <a class="row-link" href={href}>
    {children}
  </a>
)

export type Tab = { href: string; label: string; count?: number | string | undefined; isCurrent: boolean }

/** On a phone it may be beside what is on screen. */
const showCurrent = (own: HTMLElement | null): void => {
  const current = own?.querySelector<HTMLElement>('[aria-current]')
  if (own && current) own.scrollLeft = current.offsetLeft - own.clientWidth / 2
}

/** Parts of a page, each with an address of its own. */
export const Tabs = ({ label, tabs }: { label: string; tabs: readonly Tab[] }) => (
  <nav class="tabs" aria-label={label} ref={showCurrent}>
    {tabs.map(({ href, label, count, isCurrent }) => (
      <a key={href} href={href} aria-current={isCurrent ? 'page' : undefined}>
        {label}
        {count !== undefined && <span class="badge">{count}</span>}
      </a>
    ))}
  </nav>
)
