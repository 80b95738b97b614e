import { useState } from 'preact/hooks'
import { useCall } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { me } from '../copy/me.ts'
import { useDraft } from '../lib/draft.ts'
import { daysOf, EndField, endIn } from '../ui/date-field.tsx'
import { Choices, Field } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import { Note } from '../ui/note.tsx'
import { showSecret } from '../ui/secret.tsx'
import { MethodPicker } from './method-picker.tsx'

type Scope = 'read_only' | 'methods' | 'full'
const blank = { name: '', scope: 'read_only' as Scope, methods: [] as string[], end: endIn('30') }
const scopes = (['read_only', 'methods', 'full'] as const).map((value) => ({ value, ...me.scopes[value] }))

/** Asks for the purpose of the token; the secret is shown once. */
export function CreateToken({ onClose }: { onClose(): void }) {
  const { form, set, isDirty } = useDraft('token', blank)
  const { name, scope, methods, end } = form
  const [isSent, setSent] = useState(false)
  const cap = useCall('registry_list', {}).data?.caps.max_tokens
  const tokens = useCall('account_token_list', {}).data?.tokens ?? []
  const [oldest] = tokens.toSorted((a, b) => Date.parse(a.created_at) - Date.parse(b.created_at))
  const create = useSend('account_token_create', {
    spoils: ['account_token_list'],
    done: ({ name, token }) => showSecret(me.is_ready(name), token),
  })
  const isMissing = scope === 'methods' && methods.length === 0
  const submit = async (): Promise<void> => {
    setSent(true)
    const days = daysOf(end)
    if (!name.trim() || isMissing || days === undefined) return
    const made = await create.send({
      name: name.trim(),
      scope: scope === 'methods' ? { kind: scope, methods } : { kind: scope },
      lifetime: days === null ? { kind: 'eternal' } : { kind: 'ttl', days },
    })
    if (made) onClose()
  }
  return (
    <FormDialog
      title={me.new_token}
      size="full"
      onClose={onClose}
      isDirty={isDirty}
      verb={me.create}
      of={create}
      onSubmit={() => void submit()}
    >
      {cap && oldest && tokens.length >= cap && <Note kind="warn">{me.ends_oldest(cap, oldest.name)}</Note>}
      <Field
        label={me.token_name}
        hint={me.token_name_hint}
        value={name}
        onInput={(name) => set({ name })}
        fault={isSent && !name.trim() ? me.token_name_missing : null}
        autocomplete="off"
        maxlength={64}
        autofocus
      />
      <Choices label={me.may_do} value={scope} options={scopes} onChange={(scope) => set({ scope })} />
      {scope === 'methods' && (
        <MethodPicker
          chosen={methods}
          onChange={(methods) => set({ methods })}
          fault={isSent && isMissing ? me.no_method_chosen : null}
        />
      )}
      <EndField value={end} onChange={(end) => set({ end })} isSent={isSent} inDays />
      {end.choice === 'never' && <Note kind="warn">{me.never_warning}</Note>}
    </FormDialog>
  )
}
