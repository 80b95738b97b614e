import { useState } from 'preact/hooks'
import { client } from './api/client.ts'
import { useRun } from './api/run.ts'
import { words } from './copy/common.ts'
import { entry } from './copy/entry.ts'
import { explain } from './copy/errors.ts'
import { useChecked } from './entry/entry-card.tsx'
import { OtherWays } from './entry/other-ways.tsx'
import { SecondStep, secondStepOf } from './entry/second-step.tsx'
import { Button } from './ui/button.tsx'
import { Dialog } from './ui/dialog.tsx'
import { Fault } from './ui/fault.tsx'
import { PasswordField } from './ui/field.tsx'

/** Covers the page that made the call; the call is repeated afterwards. */
export function StepUpDialog({ methods, settle }: { methods: readonly string[]; settle(is: boolean): void }) {
  const [password, setPassword] = useState('')
  const { faults, check } = useChecked({ password: password ? null : entry.password_missing })
  const prove = useRun(() => client.account.reauthenticate({ password }))
  const hasPassword = methods.includes('password')
  const second = secondStepOf(prove.error)
  if (second)
    return (
      <Dialog title={entry.prove_title} onClose={() => settle(false)}>
        <SecondStep {...second} onDone={() => settle(true)} />
      </Dialog>
    )
  return (
    <Dialog
      title={entry.prove_title}
      onClose={() => settle(false)}
      onSubmit={async () => {
        if (check() && (await prove.send(undefined))) settle(true)
      }}
      foot={
        <>
          <Button onClick={() => settle(false)}>{words.cancel}</Button>
          {hasPassword && (
            <Button type="submit" kind="primary" isBusy={prove.isBusy} wait={prove.wait}>
              {entry.go_on}
            </Button>
          )}
        </>
      }
    >
      <p>{entry.prove_about}</p>
      <Fault text={prove.error && explain(prove.error)} />
      {hasPassword && (
        <PasswordField
          label={entry.password}
          value={password}
          onInput={setPassword}
          autocomplete="current-password"
          fault={faults.password}
          autofocus
        />
      )}
      <OtherWays again={methods} onDone={() => settle(true)} />
    </Dialog>
  )
}
