import { useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import { factorAdded, noticeEnd } from '../api/query.ts'
import { useRun } from '../api/run.ts'
import { freshly, useSend } from '../api/send.ts'
import { security } from '../copy/security.ts'
import { useDraft } from '../lib/draft.ts'
import { createPasskey } from '../lib/webauthn.ts'
import { Fault } from '../ui/fault.tsx'
import { Checkbox } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import { toast } from '../ui/toast.tsx'
import { showCodes } from './recovery-codes.tsx'
import { PasskeyName } from './rename-passkey.tsx'

type Props = {
  /** True: a role requires a second factor, so the passkey must be one. */
  isNeeded: boolean
  onClose(): void
}

export function AddPasskey({ isNeeded, onClose }: Props) {
  const { form, set, isDirty } = useDraft('passkey', { name: '', isSecond: isNeeded })
  const { name, isSecond } = form
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
  const submit = async (): Promise<void> => {
    setSent(true)
    setStopped(false)
    finish.reset()
    const begun = name.trim() ? await begin.send({ second_factor: isSecond }) : undefined
    if (begun && (await finish.send(begun.options))) onClose()
  }
  return (
    <FormDialog
      title={security.passkey_add}
      verb={security.passkey_add}
      of={{
        isBusy: begin.isBusy || finish.isBusy,
        wait: Math.max(begin.wait, finish.wait),
        error: begin.error ?? finish.error,
      }}
      onClose={onClose}
      isDirty={isDirty}
      onSubmit={() => void submit()}
    >
      <Fault text={isStopped ? security.passkey_stopped : null} />
      <PasskeyName value={name} onInput={(name) => set({ name })} isChecked={isSent} />
      <Checkbox
        label={security.passkey_second}
        checked={isSecond}
        onChange={(isSecond) => set({ isSecond })}
      />
    </FormDialog>
  )
}
