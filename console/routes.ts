import type { ComponentType } from 'preact'
import { shell } from './copy/common.ts'
import type { IconName } from './ui/icon.tsx'

export type PageProps = { params: Record<string, string> }
type Module = { default: ComponentType<PageProps> }
export type Route = {
  path: string
  load: () => Promise<Module>
  /** `all`: signed in or not. `admin`: a global admin; others are told. By default anybody signed in. */
  who?: 'all' | 'admin'
}

const me = () => import('./me/me-page.tsx')

/** Every page of the console: its address below `/admin`, and who may open it. */
export const routes: readonly Route[] = [
  { path: '/', load: () => import('./home/home-page.tsx') },
  { path: '/me', load: me },
  { path: '/me/:tab', load: me },
]

export type NavEntry = { path: string; label: string; icon: IconName; letter: string; admin?: true }

/** The links of the rail; `letter` after `g` goes there. */
export const nav: readonly NavEntry[] = [
  { path: '/', label: shell.home, icon: 'house', letter: 'h' },
  { path: '/me', label: shell.me, icon: 'circle-user', letter: 'm' },
]
