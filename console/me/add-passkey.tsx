import { useState } from 'preact/hooks'
import { factorAdded } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { security } from '../copy/security.ts'
import { createPasskey } from '../lib/webauthn.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { Checkbox } from '../ui/field.tsx'
import { toast } from '../ui/toast.tsx'
import { PasskeyName } from './rename-passkey.tsx'
import type { SecurityProps } from './security.tsx'

type Props = Pick<SecurityProps, 'onCodes'> & {
  /** A role asks for a second factor: then the passkey is to be one. */
  isNeeded: boolean
  onClose(): void
}

export function AddPasskey({ isNeeded, onCodes, onClose }: Props) {
  const [name, setName] = useState('')
  const [isSecond, setSecond] = useState(isNeeded)
  const [isSent, setSent] = useState(false)
  const [isStopped, setStopped] = useState(false)
  const begin = useSend('account_passkey_register_begin')
  const finish = useSend('account_passkey_register_finish')
  const error = begin.error ?? finish.error
  const submit = async (): Promise<void> => {
    setSent(true)
    setStopped(false)
    finish.reset()
    const begun = name.trim() ? await begin.send({ second_factor: isSecond }) : undefined
    if (!begun) return
    const response = await createPasskey(begun.options)
    if (!response) return setStopped(true)
    const made = await finish.send({ response: response as never, name: name.trim() })
    if (!made) return
    onClose()
    factorAdded()
    toast(security.passkey_added)
    if (made.recovery_codes) onCodes(made.recovery_codes)
  }
  return (
    <Dialog
      title={security.passkey_add}
      onClose={onClose}
      onSubmit={() => void submit()}
      foot={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button
            type="submit"
            kind="primary"
            isBusy={begin.isBusy || finish.isBusy}
            wait={Math.max(begin.wait, finish.wait)}
          >
            {security.passkey_add}
          </Button>
        </>
      }
    >
      <Fault text={isStopped ? security.passkey_stopped : error && explain(error)} />
      <PasskeyName value={name} onInput={setName} isChecked={isSent} />
      <Checkbox label={security.passkey_second} checked={isSecond} onChange={setSecond} />
    </Dialog>
  )
}
