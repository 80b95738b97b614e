import { useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useRun } from '../api/run.ts'
import { entry } from '../copy/entry.ts'
import { explain } from '../copy/errors.ts'
import { Button } from '../ui/button.tsx'
import { Fault } from '../ui/fault.tsx'
import { Field } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { Note } from '../ui/note.tsx'
import { EntryFrame, type StepProps, useChecked } from './entry-card.tsx'

/** Asks for a link; the answer is the same whether or not there is such an account. */
export function Recover({ onStep }: StepProps) {
  const [identifier, setIdentifier] = useState('')
  const [isSent, setSent] = useState(false)
  const { faults, check } = useChecked({ identifier: identifier.trim() ? null : entry.username_missing })
  const recover = useRun(() => client.account.recover({ identifier }))
  return (
    <EntryFrame
      title={entry.recover_title}
      about={entry.recover_about}
      links={
        <button type="button" class="button is-quiet" onClick={() => onStep('sign_in')}>
          {entry.sign_in}
        </button>
      }
    >
      {isSent ? (
        <Note kind="ok">{entry.recover_sent}</Note>
      ) : (
        <Form
          onSubmit={async () => {
            if (check() && (await recover.send(undefined))) setSent(true)
          }}
        >
          <Fault text={recover.error && explain(recover.error)} />
          <Field
            label={entry.username_or_email}
            value={identifier}
            onInput={setIdentifier}
            autocomplete="username"
            fault={faults.identifier}
            autofocus
          />
          <Button type="submit" kind="primary" wide isBusy={recover.isBusy} wait={recover.wait}>
            {entry.recover_send}
          </Button>
        </Form>
      )}
    </EntryFrame>
  )
}
