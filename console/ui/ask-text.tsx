import { useLayoutEffect } from 'preact/hooks'
import { useDraft } from '../lib/draft.ts'
import { Field, type FieldProps } from './field.tsx'
import { FormDialog, type FormDialogProps } from './form-dialog.tsx'

/** Asks for one line of text, such as a new name. */
export function AskText({
  title,
  whom,
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
  Omit<FormDialogProps, 'about' | 'size' | 'disabled' | 'isDirty' | 'onSubmit'> & {
    about?: string
    initial: string
    onSubmit(text: string): void
    onChange?(text: string): void
  }) {
  const { form, set, isDirty } = useDraft(title, { text: initial })
  const { text } = form
  useLayoutEffect(() => onChange?.(text), [text])
  return (
    <FormDialog
      title={title}
      whom={whom}
      about={about && <p>{about}</p>}
      verb={verb}
      of={of}
      onSubmit={() => onSubmit(text.trim())}
      onClose={onClose}
      isDirty={isDirty}
    >
      <Field autocomplete="off" {...field} value={text} onInput={(text) => set({ text })} autofocus />
      {children}
    </FormDialog>
  )
}
