import { effect } from '@preact/signals'
import { remembered } from './remembered.ts'

export type Theme = '' | 'light' | 'dark'
/** Empty: that of the system. */
export const theme = remembered('theme')

effect(() => {
  if (theme.value) document.documentElement.dataset.theme = theme.value
  else delete document.documentElement.dataset.theme
})

export type Density = '' | 'compact'
/** How close rows stand; where fingers point they stay as they are. */
export const density = remembered('density')

effect(() => {
  if (density.value) document.documentElement.dataset.density = density.value
  else delete document.documentElement.dataset.density
})

const order: readonly Theme[] = ['', 'light', 'dark']
export const nextTheme = (): void => {
  theme.value = order[(order.indexOf(theme.value as Theme) + 1) % order.length] as Theme
}
