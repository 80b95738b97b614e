import { useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { passwordFault, passwordHint } from '../api/new-password.ts'
import { useRun } from '../api/run.ts'
import { tellTabs } from '../api/session.ts'
import { entry } from '../copy/entry.ts'
import { fragment } from '../lib/fragment.ts'
import { Field, PasswordField } from '../ui/field.tsx'
import { EntryFrame, isUsername, type StepProps, useChecked } from './entry-card.tsx'
import { EntryForm } from './entry-form.tsx'

/** The first account of a server, for a person who can read its token file. */
export function Setup({ onDone, onStep }: StepProps) {
  const [token, setToken] = useState(fragment.token ?? '')
  const [username, setUsername] = useState('')
  const [password, setPassword] = useState('')
  const { faults, check } = useChecked({
    token: !token ? entry.token_missing : token === token.trim() ? null : entry.token_space,
    username: isUsername(username) ? null : entry.username_wrong,
    password: passwordFault(password),
  })
  const bootstrap = useRun(() => client.account.bootstrap({ token, username, password }), {
    done: () => {
      tellTabs('signed_in')
      onDone()
    },
  })
  return (
    <EntryFrame
      title={entry.setup_title}
      about={entry.setup_about}
      links={
        <button type="button" class="button is-quiet" onClick={() => onStep('sign_in')}>
          {entry.has_account}
        </button>
      }
    >
      <EntryForm
        of={bootstrap}
        verb={entry.set_up}
        onSubmit={() => check() && void bootstrap.send(undefined)}
      >
        <Field
          label={entry.token}
          hint={entry.token_hint}
          value={token}
          onInput={setToken}
          autocomplete="one-time-code"
          fault={faults.token}
          autofocus={!fragment.token}
          required
          mono
        />
        <Field
          label={entry.username}
          hint={entry.username_hint}
          value={username}
          onInput={setUsername}
          autocomplete="username"
          fault={faults.username}
          autofocus={Boolean(fragment.token)}
          required
        />
        <PasswordField
          label={entry.password}
          hint={passwordHint}
          value={password}
          onInput={setPassword}
          autocomplete="new-password"
          fault={faults.password}
        />
      </EntryForm>
    </EntryFrame>
  )
}
