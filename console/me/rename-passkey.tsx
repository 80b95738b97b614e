import { useState } from 'preact/hooks'
import { useSend } from '../api/send.ts'
import { words } from '../copy/common.ts'
import { security } from '../copy/security.ts'
import { Field } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import type { Passkey } from './passkeys.tsx'

export function RenamePasskey({ passkey, onClose }: { passkey: Passkey; onClose(): void }) {
  const [name, setName] = useState(passkey.name)
  const rename = useSend('account_passkey_rename', { spoils: ['account_sign_in_get'] })
  const submit = async (): Promise<void> => {
    if (name.trim() && (await rename.send({ passkey_id: passkey.id, name: name.trim() }))) onClose()
  }
  return (
    <FormDialog
      title={security.passkey_rename_title(passkey.name)}
      onClose={onClose}
      verb={words.save}
      of={rename}
      onSubmit={() => void submit()}
    >
      <PasskeyName value={name} onInput={setName} isChecked />
    </FormDialog>
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
