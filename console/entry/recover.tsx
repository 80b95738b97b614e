import { useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useRun } from '../api/run.ts'
import { entry } from '../copy/entry.ts'
import { Field } from '../ui/field.tsx'
import { Note } from '../ui/note.tsx'
import { EntryFrame, type StepProps, useChecked } from './entry-card.tsx'
import { EntryForm } from './entry-form.tsx'

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
        <EntryForm
          of={recover}
          verb={entry.recover_send}
          onSubmit={async () => {
            if (check() && (await recover.send(undefined))) setSent(true)
          }}
        >
          <Field
            label={entry.username_or_email}
            value={identifier}
            onInput={setIdentifier}
            autocomplete="username"
            fault={faults.identifier}
            autofocus
          />
        </EntryForm>
      )}
    </EntryFrame>
  )
}
