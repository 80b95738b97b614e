import { useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { passwordFault, passwordHint } from '../api/new-password.ts'
import { useCall } from '../api/query.ts'
import { useRun } from '../api/run.ts'
import { freshly } from '../api/send.ts'
import { forgetSession, tellTabs } from '../api/session.ts'
import { entry } from '../copy/entry.ts'
import { me } from '../copy/me.ts'
import { PasswordField } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import { toast } from '../ui/toast.tsx'

/** `isFirst`: the account has no password, and a fresh session replaces it. */
export function ChangePassword({ isFirst, onClose }: { isFirst: boolean; onClose(): void }) {
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const fault = passwordFault(next)
  const title = isFirst ? me.set_password : me.change_password
  const [isSent, setSent] = useState(false)
  const sessions = useCall('account_session_list', {}).data?.sessions.length
  const tokens = useCall('account_token_list', {}).data?.tokens.length
  const counts = sessions === undefined || tokens === undefined ? null : { sessions, tokens }
  const proof = isFirst ? {} : { current_password: current }
  const change = useRun(() => freshly(() => client.account.password({ ...proof, new_password: next })), {
    done: () => {
      tellTabs('signed_out')
      forgetSession()
      toast(me.password_changed)
    },
  })
  const submit = async (): Promise<void> => {
    setSent(true)
    if ((isFirst || current) && !fault && (await change.send(undefined))) onClose()
  }
  return (
    <FormDialog
      title={title}
      onClose={onClose}
      about={<p>{me.password_about(counts)}</p>}
      verb={title}
      of={change}
      onSubmit={() => void submit()}
    >
      {!isFirst && (
        <PasswordField
          label={me.current_password}
          value={current}
          onInput={setCurrent}
          autocomplete="current-password"
          fault={isSent && !current ? entry.password_missing : null}
          autofocus
        />
      )}
      <PasswordField
        label={me.new_password}
        hint={passwordHint}
        value={next}
        onInput={setNext}
        autocomplete="new-password"
        fault={isSent ? fault : null}
        autofocus={isFirst}
      />
    </FormDialog>
  )
}
