import { useEffect, useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { passwordFault, passwordHint } from '../api/new-password.ts'
import { useRun } from '../api/run.ts'
import { loadSession } from '../api/session.ts'
import { words } from '../copy/common.ts'
import { entry } from '../copy/entry.ts'
import { explain, explainRead } from '../copy/errors.ts'
import { fragment } from '../lib/fragment.ts'
import { go, to } from '../lib/router.ts'
import { Button } from '../ui/button.tsx'
import { Fault } from '../ui/fault.tsx'
import { PasswordField } from '../ui/field.tsx'
import { Note } from '../ui/note.tsx'
import { Skeleton } from '../ui/resource.tsx'
import { EntryFrame, useChecked } from './entry-card.tsx'
import { EntryForm } from './entry-form.tsx'
import { SignUp } from './sign-up.tsx'

type Ticket = Awaited<ReturnType<typeof client.account.ticket>>

/** The page of the link in a message. It says what the link is for; only pressing the button uses it up. */
export default function LinkPage() {
  const token = fragment.ticket ?? ''
  const [found, setFound] = useState<Ticket | null>(null)
  const look = useRun(async () => setFound(await client.account.ticket({ token })))
  useEffect(() => {
    if (token) void look.send(undefined)
  }, [])
  const signIn = (): void => {
    go(to('/'), { replace: true })
    void loadSession()
  }
  if (!found)
    return (
      <EntryFrame title={entry.link_title}>
        {!token ? (
          <Note kind="warn">{entry.link_gone}</Note>
        ) : look.error ? (
          <>
            <Fault text={explainRead(look.error)} />
            {look.error.reason !== 'ticket_not_found' && (
              <Button wide wait={look.wait} onClick={() => void look.send(undefined)}>
                {words.try_again}
              </Button>
            )}
          </>
        ) : (
          <Skeleton lines={2} />
        )}
      </EntryFrame>
    )
  const { purpose, username } = found
  if (purpose === 'invite') return <SignUp invite={{ ...found, token }} onDone={signIn} onStep={signIn} />
  if (purpose === 'password_reset') return <Reset token={token} name={username ?? ''} onDone={signIn} />
  return <Confirm token={token} name={username ?? ''} onDone={signIn} />
}

type Props = { token: string; name: string; onDone(): void }

function Reset({ token, name, onDone }: Props) {
  const [password, setPassword] = useState('')
  const { faults, check } = useChecked({ password: passwordFault(password) })
  const reset = useRun(() => client.account.reset({ token, password }), { done: onDone })
  return (
    <EntryFrame title={entry.reset_title} about={entry.reset_about(name)}>
      <EntryForm of={reset} verb={entry.reset_verb} onSubmit={() => check() && void reset.send(undefined)}>
        <PasswordField
          label={entry.new_password}
          hint={passwordHint}
          value={password}
          onInput={setPassword}
          autocomplete="new-password"
          fault={faults.password}
          autofocus
        />
      </EntryForm>
    </EntryFrame>
  )
}

function Confirm({ token, name, onDone }: Props) {
  const confirm = useRun(() => client.account.email_confirm({ token }), { done: onDone })
  return (
    <EntryFrame title={entry.confirm_title} about={entry.confirm_about(name)}>
      <Fault text={confirm.error && explain(confirm.error)} />
      <Button
        kind="primary"
        wide
        isBusy={confirm.isBusy}
        wait={confirm.wait}
        onClick={() => void confirm.send(undefined)}
      >
        {entry.confirm_verb}
      </Button>
    </EntryFrame>
  )
}
