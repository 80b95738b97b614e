import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { Button, type ButtonKind, IconButton, offline } from './button.tsx'
import { Fault } from './fault.tsx'
import { Field } from './field.tsx'
import { type Change, Form } from './form.tsx'
import { Id } from './id.tsx'
import { useAskingFirst } from './leave-guard.ts'
import { Note } from './note.tsx'
import { Text } from './text.tsx'

/** The account that a dialog concerns. */
export type Concerned = { id: string; username: string }

export type DialogProps = {
  title: string
  /** Shown with its id, because the names of two people may look the same. */
  whom?: Concerned | undefined
  onClose(): void
  children: ComponentChildren
  /** The buttons; those of a form are inside its element. */
  foot?: ComponentChildren
  /** Makes the dialog a form. */
  onSubmit?: () => void
  /** `full`: fills a phone. `wide`: more room for tables and editors. */
  size?: 'small' | 'full' | 'wide'
  /** False: Escape asks `onClose`, which may refuse; there is no cross. */
  canDismiss?: boolean
}

/** Where the focus was before each dialog: a dialog may outlive the one it was opened from. */
const cameFrom = new WeakMap<Element, Element | null>()

function giveFocusBack(dialog: Element): void {
  let to = cameFrom.get(dialog)
  while (to && !to.isConnected) to = cameFrom.get(to.closest('dialog') as Element)
  ;((to ?? document.querySelector('h1')) as HTMLElement | null)?.focus()
}

/**
 * A native modal dialog: focus starts on the marked element or the first field, stays inside, and returns to where it
 * was.
 */
export function Dialog({
  title,
  whom,
  onClose,
  children,
  foot,
  onSubmit,
  size = 'small',
  canDismiss = true,
}: DialogProps) {
  const own = useRef<HTMLDialogElement>(null)
  const id = useId()
  // Not a plain effect: that runs after the paint, when a dialog that replaces this one already has the focus.
  useLayoutEffect(() => {
    const dialog = own.current as HTMLDialogElement
    cameFrom.set(dialog, document.activeElement)
    dialog.showModal()
    const first = (selector: string) => dialog.querySelector<HTMLElement>(selector)
    ;(first('[data-autofocus]') ?? first('.dialog-content :is(input, select, textarea)'))?.focus()
    return () => {
      dialog.close()
      giveFocusBack(dialog)
    }
  }, [])
  const inner = (
    <>
      <header class="dialog-head">
        <h2 id={id}>
          <Text long>{title}</Text>
        </h2>
        {canDismiss && <IconButton icon="x" label={words.close} onClick={onClose} />}
      </header>
      <div class="dialog-content">
        {whom && (
          <p class="row soft">
            <Text>{whom.username}</Text>
            <Id id={whom.id} />
          </p>
        )}
        {/* What the page says about it is behind the dialog. */}
        <div role="alert" hidden={!offline.value}>
          {offline.value && <Note kind="warn">{offline.value}</Note>}
        </div>
        {children}
      </div>
      {foot && <footer class="dialog-foot">{foot}</footer>}
    </>
  )
  return (
    <dialog
      ref={own}
      class={`dialog${size === 'wide' ? ' is-wide is-full' : size === 'full' ? ' is-full' : ''}`}
      aria-labelledby={id}
      onCancel={(event) => {
        if (!event.cancelable) return
        event.preventDefault()
        onClose()
      }}
      onClose={({ currentTarget }) => {
        // At a second Escape the browser closes it, whatever is prevented.
        if (!currentTarget.isConnected || currentTarget.open) return
        currentTarget.showModal()
        onClose()
      }}
    >
      {onSubmit ? <Form onSubmit={onSubmit}>{inner}</Form> : <div class="dialog-body">{inner}</div>}
    </dialog>
  )
}

type ConfirmProps = Pick<DialogProps, 'whom'> & {
  /** The question. */
  title: string
  /** What will happen, counted. */
  children: ComponentChildren
  /** The verb of the question again. */
  verb: string
  kind?: Extract<ButtonKind, 'sure' | 'primary'>
  /** The change that it asks about, unless that begins once the dialog has closed. */
  of?: Change
  disabled?: string | false
  /** The name to be typed; null: nobody else is concerned. */
  name?: string | null
  /** Closing would lose what was typed. */
  isDirty?: boolean
  onConfirm(): void
  onClose(): void
}

/**
 * Asks before something that ends somebody's access or cannot be undone; focus starts on the button that cancels. What
 * takes much away, from others or from oneself, also asks for the `name`.
 */
export function Confirm({
  title,
  whom,
  children,
  verb,
  kind = 'sure',
  of,
  disabled,
  name,
  isDirty,
  onConfirm,
  onClose,
}: ConfirmProps) {
  const close = useAskingFirst(onClose, isDirty, of?.isBusy)
  const [typed, setTyped] = useState('')
  const label = name != null && words.type_name(name)
  const isOff = disabled || (label && typed.trim() !== name.trim() && label)
  return (
    <Dialog
      title={title}
      whom={whom}
      onClose={close}
      onSubmit={() => !isOff && !of?.isBusy && !of?.wait && onConfirm()}
      foot={
        <>
          <Button onClick={close} autofocus>
            {words.cancel}
          </Button>
          <Button type="submit" kind={kind} isBusy={of?.isBusy} wait={of?.wait} disabled={isOff}>
            <Text>{verb}</Text>
          </Button>
        </>
      }
    >
      {children}
      <Fault text={of?.error && explain(of.error)} />
      {label && <Field label={label} value={typed} onInput={setTyped} autocomplete="off" />}
    </Dialog>
  )
}
