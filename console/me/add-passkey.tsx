import { useState } from 'preact/hooks'
import { factorAdded } from '../api/query.ts'
import { useRun } from '../api/run.ts'
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
  const create = useRun(createPasskey)
  const error = begin.error ?? create.error ?? finish.error
  const submit = async (): Promise<void> => {
    setSent(true)
    setStopped(false)
    create.reset()
    finish.reset()
    const begun = name.trim() ? await begin.send({ second_factor: isSecond }) : undefined
    const response = begun && (await create.send(begun.options))
    const made = response && (await finish.send({ response, name: name.trim() }))
    if (begun && !response) setStopped(true)
    if (!made) return
    if (finish.isHere()) onClose()
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
            isBusy={begin.isBusy || create.isBusy || finish.isBusy}
            wait={Math.max(begin.wait, finish.wait)}
          >
            {security.passkey_add}
          </Button>
        </>
      }
    >
      <Fault text={error ? explain(error) : isStopped ? security.passkey_stopped : null} />
      <PasskeyName value={name} onInput={setName} isChecked={isSent} />
      <Checkbox label={security.passkey_second} checked={isSecond} onChange={setSecond} />
    </Dialog>
  )
}
