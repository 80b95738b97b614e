import type { Signal } from '@preact/signals'
import { actAs, isAdmin, signedIn, signOut } from './api/session.ts'
import { palette, shell, words } from './copy/common.ts'
import { isHelpOpen, isPaletteOpen } from './keys.ts'
import { path, to } from './lib/router.ts'
import { density, theme } from './lib/theme.ts'
import { zone } from './lib/time.ts'
import { type NavEntry, nav } from './routes.ts'
import { Icon } from './ui/icon.tsx'
import { Logo } from './ui/logo.tsx'
import { Menu, type MenuItem } from './ui/menu.tsx'
import { Badge } from './ui/note.tsx'
import { Text } from './ui/text.tsx'

/** Links to the pages; on a phone the first few are a bar at the bottom, the rest behind its last button. */
export function Rail({ waiting }: { waiting: number }) {
  const open = nav.filter((one) => !one.admin || isAdmin.value)
  const own = open.filter((one) => !one.admin)
  const admin = open.filter((one) => one.admin)
  return (
    <header class="rail">
      <a class="rail-logo" href={to('/')}>
        <Logo />
        <span>{words.product}</span>
      </a>
      <OpenPalette />
      <nav aria-label={shell.main}>
        {own.map((one) => (
          <Entry key={one.path} {...one} badge={one.path === '/inbox' ? waiting : 0} />
        ))}
        {admin.length > 0 && <div class="rail-head">{shell.administration}</div>}
        {admin.map((one) => (
          <Entry key={one.path} {...one} />
        ))}
        <details class="rail-more" key={path.value}>
          <summary>
            <Icon name="menu" />
            <span>{shell.more}</span>
          </summary>
          <div class="rail-sheet">
            <OpenPalette />
            {open.slice(4).map((one) => (
              <Entry key={one.path} {...one} />
            ))}
            <AccountMenu />
          </div>
        </details>
      </nav>
      <AccountMenu />
    </header>
  )
}

const OpenPalette = () => (
  <button
    type="button"
    class="rail-link rail-search"
    title={palette.open}
    aria-keyshortcuts="Control+K Meta+K"
    onClick={() => void (isPaletteOpen.value = true)}
  >
    <Icon name="search" />
    <span>{palette.open}</span>
    <kbd>Ctrl K</kbd>
  </button>
)

const isHere = (entry: string, at: string): boolean =>
  entry === '/' ? at === '/' : `${at}/`.startsWith(`${entry}/`)

const Entry = ({ path: entry, label, icon, badge = 0 }: NavEntry & { badge?: number }) => (
  <a
    class="rail-link"
    href={to(entry)}
    aria-current={isHere(entry, path.value) ? 'page' : undefined}
    title={label}
  >
    <Icon name={icon} />
    <span>{label}</span>
    {badge > 0 && (
      <Badge kind="accent">
        <span aria-hidden="true">{badge >= 50 ? '49+' : badge}</span>
        <span class="hidden-text">{shell.waiting(badge)}</span>
      </Badge>
    )}
  </a>
)

/** One of a few looks each; their words are in the order of the menu. */
const choices = (of: Signal<string>, labels: Readonly<Record<string, string>>): MenuItem[] =>
  Object.entries(labels).map(([value, label], index) => ({
    label,
    checked: of.value === value,
    begins: index === 0,
    onClick: () => void (of.value = value),
  }))

/** The acting actor, the look, and signing out. */
function AccountMenu() {
  const own = signedIn.value
  if (!own) return null
  const { account, actor, actors } = own
  const name = actor?.name.trim() || account.username
  const items: MenuItem[] = [
    ...(actors.length > 1
      ? actors.map((one) => ({
          label: shell.act_as(one.name),
          checked: one.id === actor?.id,
          onClick: () => void actAs(one.id),
        }))
      : []),
    ...choices(theme, shell.theme),
    ...choices(density, shell.density),
    ...choices(zone, shell.zone),
    { label: shell.shortcuts, begins: true, onClick: () => void (isHelpOpen.value = true) },
    { label: shell.sign_out, onClick: () => void signOut() },
  ]
  return (
    <div class="rail-account">
      <Menu
        label={shell.account_menu}
        items={items}
        trigger={
          <>
            <span class="avatar" aria-hidden="true">
              {[...name][0]?.toUpperCase()}
            </span>
            <span class="rail-name">
              <Text>{name}</Text>
            </span>
          </>
        }
      />
    </div>
  )
}
