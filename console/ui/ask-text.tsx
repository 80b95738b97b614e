import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { Fault } from './fault.tsx'
import { Field, type FieldProps } from './field.tsx'

/** Asks for one line of text, such as a new name. */
export function AskText({
  title,
  about,
  verb,
  initial,
  of: { isBusy, wait, error },
  onSubmit,
  onChange,
  onClose,
  children,
  ...field
}: Omit<FieldProps, 'value' | 'onInput' | 'fault'> & {
  title: string
  about?: string
  verb: string
  initial: string
  /** The change that the text is for. */
  of: { isBusy: boolean; wait: number; error: Parameters<typeof explain>[0] | null }
  onSubmit(text: string): void
  onChange?(text: string): void
  onClose(): void
  children?: ComponentChildren
}) {
  const [text, setText] = useState(initial)
  const change = (to: string): void => {
    setText(to)
    onChange?.(to)
  }
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={() => onSubmit(text.trim())}
      foot={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={isBusy} wait={wait}>
            {verb}
          </Button>
        </>
      }
    >
      {about && <p>{about}</p>}
      <Fault text={error && explain(error)} />
      <Field autocomplete="off" {...field} value={text} onInput={change} autofocus />
      {children}
    </Dialog>
  )
}
