import { useState } from 'preact/hooks'
import { useCall } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { type Session, session, signedIn, tellTabs } from '../api/session.ts'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { me } from '../copy/me.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { Field } from '../ui/field.tsx'

/** Counted first, and only with the name typed. */
export function DeleteAccount({ onClose }: { onClose(): void }) {
  const { username } = (signedIn.value as Session).account
  const [typed, setTyped] = useState('')
  const sessions = useCall('account_session_list', {}).data?.sessions.length
  const tokens = useCall('account_token_list', {}).data?.tokens.length
  const remove = useSend('account_delete')
  const isCounted = sessions !== undefined && tokens !== undefined
  const submit = async (): Promise<void> => {
    if (typed !== username || !(await remove.send({}))) return
    tellTabs('signed_out')
    session.value = { account: null, isNew: false }
  }
  return (
    <Dialog
      title={me.delete_question(username)}
      onClose={onClose}
      onSubmit={() => void submit()}
      foot={
        <>
          <Button onClick={onClose} autofocus>
            {words.cancel}
          </Button>
          <Button
            type="submit"
            kind="sure"
            isBusy={remove.isBusy}
            disabled={isCounted ? typed !== username && me.delete_type(username) : me.counting}
          >
            {me.delete_verb(username)}
          </Button>
        </>
      }
    >
      <p>{isCounted ? me.delete_consequences(sessions, tokens) : me.counting}</p>
      <Fault text={remove.error && explain(remove.error)} />
      <Field label={me.delete_type(username)} value={typed} onInput={setTyped} autocomplete="off" />
    </Dialog>
  )
}
