import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { words } from '../copy/common.ts'
import { Icon, type IconName } from './icon.tsx'

/** Why the server cannot be reached now; buttons that call it are disabled meanwhile. */
export const offline = signal<string | false>(false)

export type ButtonKind = 'plain' | 'primary' | 'danger' | 'sure' | 'quiet'
type Look = { kind?: ButtonKind; icon?: IconName; wide?: boolean; small?: boolean }
const kinds = {
  plain: '',
  primary: ' is-primary',
  danger: ' is-danger',
  sure: ' is-danger is-sure',
  quiet: ' is-quiet',
}
const classOf = ({ kind = 'plain', wide, small }: Look, isIcon = false): string =>
  `button${kinds[kind]}${wide ? ' is-wide' : ''}${small ? ' is-small' : ''}${isIcon ? ' is-icon' : ''}`

export type ButtonProps = Look & {
  children: ComponentChildren
  onClick?: (event: MouseEvent) => void
  type?: 'button' | 'submit'
  /** The state of its call; a button without one makes none. */
  isBusy?: boolean
  /** Seconds until it can be used again, counted down on it. */
  wait?: number
  /** Why it cannot be used now; announced, and shown on hover. */
  disabled?: string | false | undefined
  autofocus?: boolean
  pressed?: boolean
  popovertarget?: string
  /** This key clicks it; `keys.ts` lists them. */
  shortcut?: Shortcut
}
export type Shortcut = 'n' | 'e' | 's' | 'r' | 'p' | 'Control+S Meta+S'

/** Stays in the tab order when disabled, so that its reason can be found. */
export function Button({
  children,
  onClick,
  type = 'button',
  isBusy,
  wait = 0,
  disabled: own,
  ...rest
}: ButtonProps) {
  const disabled = own || (isBusy !== undefined && offline.value)
  const { kind, icon, wide, small, autofocus, pressed, popovertarget, shortcut } = rest
  const isOff = Boolean(disabled) || isBusy || wait > 0
  return (
    <button
      type={type}
      class={classOf({ kind, wide, small })}
      aria-disabled={isOff || undefined}
      aria-busy={isBusy || undefined}
      aria-pressed={pressed}
      title={disabled || undefined}
      data-autofocus={autofocus || undefined}
      popovertarget={popovertarget}
      aria-keyshortcuts={shortcut}
      onClick={(event) => {
        if (isOff) event.preventDefault()
        else onClick?.(event)
      }}
    >
      {isBusy ? <span class="spinner" aria-hidden="true" /> : icon && <Icon name={icon} />}
      <span>{wait > 0 ? words.again_in(wait) : children}</span>
      {disabled && <span class="hidden-text">{disabled}</span>}
    </button>
  )
}

type IconButtonProps = Look & {
  icon: IconName
  label: string
  onClick?: (event: MouseEvent) => void
  popovertarget?: string
}

export const IconButton = ({
  icon,
  label,
  onClick,
  popovertarget,
  kind = 'quiet',
  small,
}: IconButtonProps) => (
  <button
    type="button"
    class={classOf({ kind, small }, true)}
    aria-label={label}
    title={label}
    onClick={onClick}
    popovertarget={popovertarget}
  >
    <Icon name={icon} />
  </button>
)

/** A link that looks like a button; `href` is always one of our own. */
export const ButtonLink = ({
  href,
  children,
  shortcut,
  ...look
}: Look & { href: string; children: ComponentChildren; shortcut?: Shortcut }) => (
  <a href={href} class={classOf(look)} aria-keyshortcuts={shortcut}>
    {look.icon && <Icon name={look.icon} />}
    {children}
  </a>
)
