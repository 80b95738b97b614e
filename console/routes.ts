import type { ComponentType } from 'preact'
import { server } from './api/server.ts'
import { shell } from './copy/common.ts'
import type { IconName } from './ui/icon.tsx'

export type PageProps = { params: Record<string, string> }
type Module = { default: ComponentType<PageProps> }
export type Route = {
  path: string
  load: () => Promise<Module>
  /** `all`: signed in or not. `admin`: global admins; others get an explanation. Default: anybody signed in. */
  who?: 'all' | 'admin'
}

const me = () => import('./me/me-page.tsx')
const inbox = () => import('./inbox/inbox-page.tsx')
const cells = () => import('./cells/cells-page.tsx')
const cell = () => import('./cells/cell-page.tsx')
const person = () => import('./people/person-page.tsx')
const audit = () => import('./audit/audit-page.tsx')

/** Every page of the console: its address below `/admin`, and who may open it. */
export const routes: readonly Route[] = [
  { path: '/', load: () => import('./home/home-page.tsx') },
  { path: '/link', load: () => import('./entry/link-page.tsx'), who: 'all' },
  { path: '/callback/:provider', load: () => import('./entry/callback-page.tsx'), who: 'all' },
  { path: '/go/:id', load: () => import('./go/go-page.tsx') },
  { path: '/inbox', load: inbox },
  { path: '/inbox/:tab(sent|history)', load: inbox },
  { path: '/cells', load: cells },
  { path: '/cells/:id', load: cell },
  { path: '/cells/:id/:tab(relations|items|sharing|why|timeline)', load: cell },
  { path: '/me', load: me },
  { path: '/me/:tab(sessions|tokens|roles|security)', load: me },
  { path: '/people', load: () => import('./people/people-page.tsx'), who: 'admin' },
  { path: '/people/:id', load: person, who: 'admin' },
  { path: '/people/:id/:tab(sign_in|sessions|tokens|offers|cells|audit)', load: person, who: 'admin' },
  { path: '/roles', load: () => import('./roles/roles-page.tsx'), who: 'admin' },
  { path: '/roles/:name', load: () => import('./roles/role-page.tsx'), who: 'admin' },
  { path: '/invites', load: () => import('./invites/invites-page.tsx'), who: 'admin' },
  ...(server.features.mail
    ? [{ path: '/messages', load: () => import('./messages/messages-page.tsx'), who: 'admin' as const }]
    : []),
  ...(server.features.app_settings
    ? [{ path: '/settings', load: () => import('./settings/settings-page.tsx'), who: 'admin' as const }]
    : []),
  { path: '/audit', load: audit, who: 'admin' },
  { path: '/audit/:part(live|\\d{1,15})', load: audit, who: 'admin' },
  ...(server.features.openrpc ? [{ path: '/api', load: () => import('./explorer/explorer-page.tsx') }] : []),
  { path: '/status', load: () => import('./status/status-page.tsx'), who: 'admin' },
]

export type NavEntry = { path: string; label: string; icon: IconName; letter: string; admin?: true }

/** The links of the rail; `g` and then `letter` goes there. */
const links: readonly NavEntry[] = [
  { path: '/', label: shell.home, icon: 'house', letter: 'h' },
  { path: '/inbox', label: shell.inbox, icon: 'inbox', letter: 'i' },
  { path: '/cells', label: shell.cells, icon: 'boxes', letter: 'c' },
  { path: '/me', label: shell.me, icon: 'circle-user', letter: 'm' },
  { path: '/people', label: shell.people, icon: 'users', letter: 'p', admin: true },
  { path: '/roles', label: shell.roles, icon: 'shield', letter: 'r', admin: true },
  { path: '/invites', label: shell.invites, icon: 'mail', letter: 'v', admin: true },
  { path: '/messages', label: shell.messages, icon: 'send', letter: 'l', admin: true },
  { path: '/settings', label: shell.settings, icon: 'settings', letter: 's', admin: true },
  { path: '/audit', label: shell.audit, icon: 'scroll-text', letter: 'a', admin: true },
  { path: '/status', label: shell.status, icon: 'activity', letter: 't', admin: true },
  { path: '/api', label: shell.explorer, icon: 'code-xml', letter: 'e' },
]
/** Pages that this server does not have are left out. */
export const nav = links.filter((link) => routes.some(({ path }) => path === link.path))
