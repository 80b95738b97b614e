import type { ComponentChildren } from 'preact'
import { Fragment } from 'preact'
import { useId } from 'preact/hooks'
import { IconButton } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'
import { Text } from './text.tsx'

export type MenuItem = {
  label: string
  onClick(): void
  danger?: boolean
  checked?: boolean
  /** Draws a line above it: the first of another group. */
  begins?: boolean
  /** Why it cannot be used now. */
  disabled?: string | false
}

/** A button that opens a list of actions; arrows move in it, Escape closes it. */
export function Menu({
  label,
  items,
  icon = 'ellipsis',
  trigger,
}: {
  label: string
  items: readonly MenuItem[]
  icon?: IconName
  trigger?: ComponentChildren
}) {
  const id = `menu${useId()}`
  return (
    <>
      {trigger ? (
        <button type="button" class="menu-trigger" popovertarget={id} aria-haspopup="menu">
          {trigger}
          <span class="hidden-text">{label}</span>
        </button>
      ) : (
        <IconButton icon={icon} label={label} popovertarget={id} />
      )}
      <div
        id={id}
        popover="auto"
        class="menu"
        role="menu"
        aria-label={label}
        onKeyDown={move}
        onToggle={focusFirst}
      >
        {items.map((one, index) => (
          <Fragment key={one.label}>
            {one.begins && index > 0 && <hr />}
            <button
              type="button"
              role={one.checked === undefined ? 'menuitem' : 'menuitemradio'}
              tabIndex={-1}
              class={one.danger ? 'is-danger' : ''}
              aria-checked={one.checked}
              aria-disabled={Boolean(one.disabled) || undefined}
              title={one.disabled || undefined}
              onClick={() => {
                if (one.disabled) return
                document.getElementById(id)?.hidePopover()
                one.onClick()
              }}
            >
              <Text>{one.label}</Text>
              {one.checked && <Icon name="check" />}
            </button>
          </Fragment>
        ))}
      </div>
    </>
  )
}

const focusFirst = (event: { newState: string; currentTarget: HTMLElement }): void => {
  if (event.newState === 'open') event.currentTarget.querySelector<HTMLElement>('[role^=menuitem]')?.focus()
}

function move(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const items = [...event.currentTarget.querySelectorAll<HTMLElement>('[role^=menuitem]')]
  const at = items.indexOf(document.activeElement as HTMLElement)
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key]
  if (event.key === 'Tab') event.currentTarget.hidePopover()
  if (to === undefined) return
  event.preventDefault()
  items[(to + items.length) % items.length]?.focus()
}
