import type { ComponentChildren } from 'preact'
import { explain } from '../copy/errors.ts'
import { Button } from '../ui/button.tsx'
import { Fault } from '../ui/fault.tsx'
import { type Change, Form } from '../ui/form.tsx'

type Props = {
  /** What the form sends. */
  of: Change
  /** On the button that sends. */
  verb: string
  onSubmit(): unknown
  children?: ComponentChildren
  /** Other buttons, below that one. */
  others?: ComponentChildren
}

/** The form of a card: the refusal of the last attempt, the fields, and the button that sends them. */
export const EntryForm = ({ of, verb, onSubmit, children, others }: Props) => (
  <Form onSubmit={onSubmit}>
    <Fault text={of.error && explain(of.error)} />
    {children}
    <Button type="submit" kind="primary" wide isBusy={of.isBusy} wait={of.wait}>
      {verb}
    </Button>
    {others}
  </Form>
)
