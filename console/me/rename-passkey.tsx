import { useSend } from '../api/send.ts'
import { words } from '../copy/common.ts'
import { security } from '../copy/security.ts'
import { useDraft } from '../lib/draft.ts'
import { Field } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import type { Passkey } from './passkeys.tsx'

export function RenamePasskey({ passkey, onClose }: { passkey: Passkey; onClose(): void }) {
  const { form, set, isDirty } = useDraft(passkey.id, { name: passkey.name })
  const name = form.name.trim()
  const rename = useSend('account_passkey_rename', { spoils: ['account_sign_in_get'] })
  const submit = async (): Promise<void> => {
    if (name && (await rename.send({ passkey_id: passkey.id, name }))) onClose()
  }
  return (
    <FormDialog
      title={security.passkey_rename_title(passkey.name)}
      onClose={onClose}
      isDirty={isDirty}
      verb={words.save}
      of={rename}
      onSubmit={() => void submit()}
    >
      <PasskeyName value={form.name} onInput={(name) => set({ name })} isChecked />
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
