import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { words } from '../copy/common.ts'
import { Button, type ButtonKind, IconButton } from './button.tsx'
import { Fault } from './fault.tsx'

export type DialogProps = {
  title: string
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

/** A native modal dialog: focus stays in it, and returns to where it was. */
export function Dialog({
  title,
  onClose,
  children,
  foot,
  onSubmit,
  size = 'small',
  canDismiss = true,
}: DialogProps) {
  const own = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const dialog = own.current as HTMLDialogElement
    const before = document.activeElement as HTMLElement | null
    dialog.showModal()
    dialog.querySelector<HTMLElement>('[data-autofocus]')?.focus()
    return () => {
      dialog.close()
      if (before?.isConnected) before.focus()
      else document.querySelector<HTMLElement>('h1')?.focus()
    }
  }, [])
  const inner = (
    <>
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        {canDismiss && <IconButton icon="x" label={words.close} onClick={onClose} />}
      </header>
      <div class="dialog-content">{children}</div>
      {foot && <footer class="dialog-foot">{foot}</footer>}
    </>
  )
  return (
    <dialog
      ref={own}
      class={`dialog${size === 'wide' ? ' is-wide is-full' : size === 'full' ? ' is-full' : ''}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
    >
      {onSubmit ? (
        <form
          noValidate
          onSubmit={(event) => {
            event.preventDefault()
            onSubmit()
          }}
        >
          {inner}
        </form>
      ) : (
        <div class="dialog-body">{inner}</div>
      )}
    </dialog>
  )
}

export type ConfirmProps = {
  /** A question. */
  title: string
  /** What will happen, counted. */
  children: ComponentChildren
  /** The verb of the question again. */
  verb: string
  kind?: Extract<ButtonKind, 'sure' | 'primary'>
  isBusy?: boolean
  wait?: number
  disabled?: string | false
  fault?: string | null
  onConfirm(): void
  onClose(): void
}

/** Asks before something that ends somebody's access or cannot be undone; focus begins on the way out. */
export const Confirm = ({
  title,
  children,
  verb,
  kind = 'sure',
  onConfirm,
  onClose,
  ...rest
}: ConfirmProps) => (
  <Dialog
    title={title}
    onClose={onClose}
    foot={
      <>
        <Button onClick={onClose} autofocus>
          {words.cancel}
        </Button>
        <Button
          kind={kind}
          onClick={onConfirm}
          isBusy={rest.isBusy}
          wait={rest.wait}
          disabled={rest.disabled}
        >
          {verb}
        </Button>
      </>
    }
  >
    {children}
    <Fault text={rest.fault} />
  </Dialog>
)
