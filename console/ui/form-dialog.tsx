import type { ComponentChildren } from 'preact'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { Button } from './button.tsx'
import { Dialog, type DialogProps } from './dialog.tsx'
import { Fault } from './fault.tsx'
import type { Change } from './form.tsx'
import { useAskingFirst } from './leave-guard.ts'

export type FormDialogProps = Pick<DialogProps, 'title' | 'whom' | 'size' | 'onClose'> & {
  /** What comes before the refusal of the last attempt and the fields. */
  about?: ComponentChildren
  /** On the button that sends. */
  verb: string
  /** The change that the form is for. */
  of: Change
  /** Why it cannot be sent yet. */
  disabled?: string | false
  /** Closing would lose what was typed. */
  isDirty?: boolean
  onSubmit(): void
  children?: ComponentChildren
}

/** A dialog for one change, with the refusal of the last attempt and the buttons that cancel and send. */
export function FormDialog({
  about,
  verb,
  of,
  disabled,
  isDirty,
  onClose,
  children,
  ...dialog
}: FormDialogProps) {
  const close = useAskingFirst(onClose, isDirty, of.isBusy)
  return (
    <Dialog
      {...dialog}
      onClose={close}
      foot={
        <>
          <Button onClick={close}>{words.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={of.isBusy} wait={of.wait} disabled={disabled}>
            {verb}
          </Button>
        </>
      }
    >
      {about}
      <Fault text={of.error && explain(of.error)} />
      {children}
    </Dialog>
  )
}
