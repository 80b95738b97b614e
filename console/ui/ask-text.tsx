import { useState } from 'preact/hooks'
import { Field, type FieldProps } from './field.tsx'
import { FormDialog, type FormDialogProps } from './form-dialog.tsx'

/** Asks for one line of text, such as a new name. */
export function AskText({
  title,
  about,
  verb,
  initial,
  of,
  onSubmit,
  onChange,
  onClose,
  children,
  ...field
}: Omit<FieldProps, 'value' | 'onInput' | 'fault'> &
  Omit<FormDialogProps, 'about' | 'size' | 'disabled' | 'onSubmit'> & {
    about?: string
    initial: string
    onSubmit(text: string): void
    onChange?(text: string): void
  }) {
  const [text, setText] = useState(initial)
  const change = (to: string): void => {
    setText(to)
    onChange?.(to)
  }
  return (
    <FormDialog
      title={title}
      about={about && <p>{about}</p>}
      verb={verb}
      of={of}
      onSubmit={() => onSubmit(text.trim())}
      onClose={onClose}
    >
      <Field autocomplete="off" {...field} value={text} onInput={change} autofocus />
      {children}
    </FormDialog>
  )
}
