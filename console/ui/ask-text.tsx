import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { words } from '../copy/common.ts'
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
  isBusy,
  wait,
  fault,
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
  isBusy: boolean
  wait: number
  fault: string | null
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
      <Fault text={fault} />
      <Field autocomplete="off" {...field} value={text} onInput={change} autofocus />
      {children}
    </Dialog>
  )
}
