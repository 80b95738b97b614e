import { useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useRun } from '../api/run.ts'
import { session, tellTabs } from '../api/session.ts'
import { words } from '../copy/common.ts'
import { entry } from '../copy/entry.ts'
import { explain } from '../copy/errors.ts'
import { me } from '../copy/me.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { PasswordField } from '../ui/field.tsx'
import { toast } from '../ui/toast.tsx'

export function ChangePassword({ onClose }: { onClose(): void }) {
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const isShort = [...next].length < 12
  const [isSent, setSent] = useState(false)
  const change = useRun(() => client.account.password({ current_password: current, new_password: next }))
  const submit = async (): Promise<void> => {
    setSent(true)
    if (!current || isShort || !(await change.send(undefined))) return
    onClose()
    toast(me.password_changed)
    tellTabs('signed_out')
    session.value = { account: null, isNew: false }
  }
  return (
    <Dialog
      title={me.change_password}
      onClose={onClose}
      onSubmit={() => void submit()}
      foot={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={change.isBusy} wait={change.wait}>
            {me.change_password}
          </Button>
        </>
      }
    >
      <p>{me.password_about}</p>
      <Fault text={change.error && explain(change.error)} />
      <PasswordField
        label={me.current_password}
        value={current}
        onInput={setCurrent}
        autocomplete="current-password"
        fault={isSent && !current ? entry.password_missing : null}
        autofocus
      />
      <PasswordField
        label={me.new_password}
        hint={entry.password_hint}
        value={next}
        onInput={setNext}
        autocomplete="new-password"
        fault={isSent && isShort ? entry.password_short : null}
      />
    </Dialog>
  )
}
