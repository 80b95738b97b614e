import { useEffect, useMemo, useState } from 'preact/hooks'
import { useSend } from '../api/send.ts'
import { cells } from '../copy/cells.ts'
import { draftOf, dropDraft, keepDraft } from '../lib/draft.ts'
import { checkData, type Problem } from '../lib/json-check.ts'
import { go, to } from '../lib/router.ts'
import { Choices, Field, TextArea } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import { toast } from '../ui/toast.tsx'
import { problemText } from './problem-text.ts'

type Form = { label: string; kind: string; visibility: 'private' | 'public' }
const blank: Form = { label: '', kind: '', visibility: 'private' }
const empty = '{\n}'
/** Stands for its id among the drafts. */
const draft = 'new'

export function NewCell({ onClose }: { onClose(): void }) {
  const [kept] = useState(() => draftOf<{ form: Form; text: string }>(draft))
  const [form, setForm] = useState(kept?.form ?? blank)
  const [text, setText] = useState(kept?.text ?? empty)
  const { label, kind, visibility } = form
  const [isSent, setSent] = useState(false)
  const create = useSend('cell_create', {
    spoils: ['cell_list', 'audit_log_list'],
    done: () => toast(cells.created),
  })
  const checked = useMemo(() => checkData(text), [text])
  const problem = 'problems' in checked ? problemText(checked.problems[0] as Problem) : null
  const submit = async (): Promise<void> => {
    setSent(true)
    if ('problems' in checked) return
    const data = label.trim() ? { label: label.trim(), ...checked.data } : checked.data
    const made = await create.send({ data, visibility, kind: kind.trim() || null })
    if (!made) return
    dropDraft(draft)
    go(to(`/cells/${made.cell.id}`))
  }
  const isDirty = text !== empty || label !== '' || kind !== '' || visibility !== blank.visibility
  useEffect(() => (isDirty ? keepDraft(draft, { form, text }) : dropDraft(draft)), [isDirty, form, text])
  const close = (): void => {
    dropDraft(draft)
    onClose()
  }
  return (
    <FormDialog
      title={cells.new_cell}
      size="full"
      onClose={close}
      isDirty={isDirty}
      verb={cells.create}
      of={create}
      onSubmit={() => void submit()}
    >
      <Field
        label={cells.label}
        value={label}
        onInput={(label) => setForm({ ...form, label })}
        autocomplete="off"
        autofocus
      />
      <Field
        label={cells.kind}
        hint={cells.kind_hint}
        value={kind}
        onInput={(kind) => setForm({ ...form, kind })}
        autocomplete="off"
        maxlength={128}
      />
      <Choices
        label={cells.visibility_label}
        value={visibility}
        options={[
          { value: 'private', ...cells.private_choice },
          { value: 'public', ...cells.public_choice },
        ]}
        onChange={(visibility) => setForm({ ...form, visibility })}
      />
      <TextArea
        label={cells.data}
        hint={cells.data_hint}
        value={text}
        onInput={setText}
        rows={6}
        mono
        fault={isSent ? problem : null}
      />
    </FormDialog>
  )
}
