import { useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { passwordFault, passwordHint } from '../api/new-password.ts'
import { useRun } from '../api/run.ts'
import { server } from '../api/server.ts'
import { tellTabs } from '../api/session.ts'
import { entry } from '../copy/entry.ts'
import { faultOf } from '../copy/errors.ts'
import { fragment } from '../lib/fragment.ts'
import { Field, PasswordField } from '../ui/field.tsx'
import { EntryFrame, isUsername, type StepProps, useChecked } from './entry-card.tsx'
import { EntryForm } from './entry-form.tsx'
import { OtherWays } from './other-ways.tsx'

type Invite = { token: string; username: string | null; email: string | null }

/**
 * For everybody while sign-up is open, and always for invited people. A link fills in the form; its token names the
 * invite.
 */
export function SignUp({ onDone, onStep, invite }: StepProps & { invite?: Invite }) {
  const [username, setUsername] = useState(invite?.username ?? fragment.u ?? '')
  const [email, setEmail] = useState(invite?.email ?? fragment.e ?? '')
  const [password, setPassword] = useState('')
  const isInvited = Boolean(invite || fragment.u || fragment.e)
  const about = server.invite_claim === 'match' || invite ? entry.sign_up_about : entry.sign_up_by_link
  const { faults, check } = useChecked({
    username: isUsername(username) ? null : entry.username_wrong,
    password: passwordFault(password),
  })
  const invite_token = invite?.token
  const signup = useRun(
    () => client.account.signup({ username, password, email: email || null, invite_token }),
    {
      done: () => {
        tellTabs('signed_in')
        onDone()
      },
    },
  )
  return (
    <EntryFrame
      title={isInvited ? entry.invite_title : entry.sign_up_title}
      about={isInvited && about !== entry.sign_up_by_link ? entry.invite_about : about}
      links={
        <button type="button" class="button is-quiet" onClick={() => onStep('sign_in')}>
          {entry.has_account}
        </button>
      }
    >
      <EntryForm of={signup} verb={entry.sign_up} onSubmit={() => check() && void signup.send(undefined)}>
        <Field
          label={entry.username}
          hint={entry.username_hint}
          value={username}
          onInput={setUsername}
          autocomplete="username"
          fault={faults.username}
          autofocus
          required
        />
        <Field
          label={entry.email}
          type="email"
          value={email}
          onInput={setEmail}
          autocomplete="email"
          fault={faultOf(signup.error, 'email')}
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
      <OtherWays invite_token={invite_token} />
    </EntryFrame>
  )
}
