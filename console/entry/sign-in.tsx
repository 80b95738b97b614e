import { useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useRun } from '../api/run.ts'
import { server } from '../api/server.ts'
import { tellTabs } from '../api/session.ts'
import { entry } from '../copy/entry.ts'
import { Field, PasswordField } from '../ui/field.tsx'
import { EntryFrame, type StepProps, useChecked } from './entry-card.tsx'
import { EntryForm } from './entry-form.tsx'
import { OtherWays } from './other-ways.tsx'
import { SecondStepCard, secondStepOf } from './second-step.tsx'

export function SignIn({ onDone, onStep }: StepProps) {
  const [username, setUsername] = useState('')
  const [password, setPassword] = useState('')
  const { faults, check } = useChecked({
    username: username ? null : entry.username_missing,
    password: password ? null : entry.password_missing,
  })
  const done = (): void => {
    tellTabs('signed_in')
    onDone()
  }
  const login = useRun(() => client.account.login({ username, password }), { done })
  const second = secondStepOf(login.error)
  const again = (): void => {
    setPassword('')
    login.reset()
  }
  if (second) return <SecondStepCard {...second} onDone={done} onAgain={again} />
  return (
    <EntryFrame
      title={entry.sign_in_title}
      links={
        <>
          {server.features.recovery && (
            <button type="button" class="button is-quiet" onClick={() => onStep('recover')}>
              {entry.forgot}
            </button>
          )}
          {server.features.signup && (
            <button type="button" class="button is-quiet" onClick={() => onStep('sign_up')}>
              {entry.no_account}
            </button>
          )}
        </>
      }
    >
      <EntryForm of={login} verb={entry.sign_in} onSubmit={() => check() && void login.send(undefined)}>
        <Field
          label={entry.username_or_email}
          value={username}
          onInput={setUsername}
          autocomplete="username"
          fault={faults.username}
          required
          autofocus
        />
        <PasswordField
          label={entry.password}
          value={password}
          onInput={setPassword}
          autocomplete="current-password"
          fault={faults.password}
        />
      </EntryForm>
      <OtherWays onDone={done} />
    </EntryFrame>
  )
}
