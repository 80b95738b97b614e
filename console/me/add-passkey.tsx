import { useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import { factorAdded, noticeEnd } from '../api/query.ts'
import { useRun } from '../api/run.ts'
import { freshly, useSend } from '../api/send.ts'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { security } from '../copy/security.ts'
import { createPasskey } from '../lib/webauthn.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { Checkbox } from '../ui/field.tsx'
import { toast } from '../ui/toast.tsx'
import { showCodes } from './recovery-codes.tsx'
import { PasskeyName } from './rename-passkey.tsx'

type Props = {
  /** True: a role requires a second factor, so the passkey must be one. */
  isNeeded: boolean
  onClose(): void
}

export function AddPasskey({ isNeeded, onClose }: Props) {
  const [name, setName] = useState('')
  const [isSecond, setSecond] = useState(isNeeded)
  const [isSent, setSent] = useState(false)
  const [isStopped, setStopped] = useState(false)
  const begin = useSend('account_passkey_register_begin')
  // Registers what the device has made even if the dialog was closed meanwhile.
  const finish = useRun(
    async (options: Parameters<typeof createPasskey>[0]) => {
      const response = await createPasskey(options)
      return response
        ? freshly(() => call('account_passkey_register_finish', { response, name: name.trim() }, null))
        : null
    },
    {
      done: (made) => {
        if (!made) return setStopped(true)
        factorAdded()
        toast(security.passkey_added)
        showCodes(made.recovery_codes)
      },
      refused: noticeEnd,
    },
  )
  const error = begin.error ?? finish.error
  const submit = async (): Promise<void> => {
    setSent(true)
    setStopped(false)
    finish.reset()
    const begun = name.trim() ? await begin.send({ second_factor: isSecond }) : undefined
    if (begun && (await finish.send(begun.options))) onClose()
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
      <Fault text={error ? explain(error) : isStopped ? security.passkey_stopped : null} />
      <PasskeyName value={name} onInput={setName} isChecked={isSent} />
      <Checkbox label={security.passkey_second} checked={isSecond} onChange={setSecond} />
    </Dialog>
  )
}
