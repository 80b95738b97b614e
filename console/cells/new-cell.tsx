import { useMemo, useState } from 'preact/hooks'
import { useSend } from '../api/send.ts'
import { cells } from '../copy/cells.ts'
import { useDraft } from '../lib/draft.ts'
import { checkData, type Problem } from '../lib/json-check.ts'
import { go, to } from '../lib/router.ts'
import { Choices, Field, TextArea } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import { toast } from '../ui/toast.tsx'
import { problemText } from './problem-text.ts'

const blank = { label: '', kind: '', visibility: 'private' as 'private' | 'public', text: '{\n}' }

export function NewCell({ onClose }: { onClose(): void }) {
  const { form, set, isDirty } = useDraft('new', blank)
  const { label, kind, visibility, text } = form
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
    // So that Back does not ask for another.
    onClose()
    go(to(`/cells/${made.cell.id}`), { isSaved: true })
  }
  return (
    <FormDialog
      title={cells.new_cell}
      size="full"
      onClose={onClose}
      isDirty={isDirty}
      verb={cells.create}
      of={create}
      onSubmit={() => void submit()}
    >
      <Field
        label={cells.label}
        value={label}
        onInput={(label) => set({ label })}
        autocomplete="off"
        autofocus
      />
      <Field
        label={cells.kind}
        hint={cells.kind_hint}
        value={kind}
        onInput={(kind) => set({ kind })}
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
        onChange={(visibility) => set({ visibility })}
      />
      <TextArea
        label={cells.data}
        hint={cells.data_hint}
        value={text}
        onInput={(text) => set({ text })}
        rows={6}
        mono
        fault={isSent ? problem : null}
      />
    </FormDialog>
  )
}
