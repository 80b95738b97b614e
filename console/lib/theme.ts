import { effect, type Signal } from '@preact/signals'
import { remembered } from './remembered.ts'

export type Theme = '' | 'light' | 'dark'
/** Empty: the theme of the system. */
export const theme = look('theme')

/** How close rows are; on touch screens they stay as they are. */
export const density = look('density')

/** Stored by the browser, for all its tabs, and passed to the style sheets. */
function look(name: 'theme' | 'density'): Signal<string> {
  const value = remembered(name)
  const { dataset } = document.documentElement
  addEventListener('storage', ({ key, newValue }) => {
    if (key === `cellkeep.${name}`) value.value = newValue ?? ''
  })
  effect(() => {
    if (value.value) dataset[name] = value.value
    else delete dataset[name]
  })
  return value
}

const order: readonly Theme[] = ['', 'light', 'dark']
export const nextTheme = (): void => {
  theme.value = order[(order.indexOf(theme.value as Theme) + 1) % order.length] as Theme
}
