import { useState } from 'preact/hooks'
import { useSend } from '../api/send.ts'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { security } from '../copy/security.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { Field } from '../ui/field.tsx'
import type { Passkey } from './passkeys.tsx'

export function RenamePasskey({ passkey, onClose }: { passkey: Passkey; onClose(): void }) {
  const [name, setName] = useState(passkey.name)
  const rename = useSend('account_passkey_rename', { spoils: ['account_sign_in_get'] })
  const submit = async (): Promise<void> => {
    if (name.trim() && (await rename.send({ passkey_id: passkey.id, name: name.trim() }))) onClose()
  }
  return (
    <Dialog
      title={security.passkey_rename_title(passkey.name)}
      onClose={onClose}
      onSubmit={() => void submit()}
      foot={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={rename.isBusy} wait={rename.wait}>
            {words.save}
          </Button>
        </>
      }
    >
      <Fault text={rename.error && explain(rename.error)} />
      <PasskeyName value={name} onInput={setName} isChecked />
    </Dialog>
  )
}

export const PasskeyName = ({
  value,
  onInput,
  isChecked,
}: {
  value: string
  onInput(value: string): void
  isChecked: boolean
}) => (
  <Field
    label={security.passkey_name}
    hint={security.passkey_name_hint}
    value={value}
    onInput={onInput}
    fault={isChecked && !value.trim() ? security.passkey_name_missing : null}
    autocomplete="off"
    maxlength={60}
    autofocus
  />
)
