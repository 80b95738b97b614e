import { useState } from 'preact/hooks'
import { useCount } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { cells } from '../copy/cells.ts'
import { useDraft } from '../lib/draft.ts'
import { go, to } from '../lib/router.ts'
import { Counted, notCounted } from '../ui/counted.tsx'
import { Checkbox, Field } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import { toast } from '../ui/toast.tsx'
import type { DialogOf } from './cell-menu.tsx'

/** Counts what a copy would contain before it is made. */
export function CloneCell({ got: { cell }, onClose }: DialogOf) {
  const [deep, setDeep] = useState(false)
  const { form, set, isDirty } = useDraft('clone', { label: '' })
  const preview = useCount('cell_clone_preview', { source_id: cell.id, deep })
  const clone = useSend('cell_clone', { spoils: ['cell_list'], done: () => toast(cells.cloned) })
  const chooseDeep = (next: boolean): void => {
    clone.reset()
    setDeep(next)
  }
  const submit = async (): Promise<void> => {
    const label = form.label.trim()
    const made = await clone.send({ source_id: cell.id, deep, ...(label && { with_data_patch: { label } }) })
    if (!made) return
    // So that Back does not ask for another.
    onClose()
    go(to(`/cells/${made.cell.id}`), { isSaved: true })
  }
  return (
    <FormDialog
      title={cells.clone}
      verb={cells.clone}
      of={clone}
      disabled={notCounted(preview)}
      onClose={onClose}
      isDirty={isDirty}
      onSubmit={() => preview.data && void submit()}
    >
      <Field
        label={cells.label}
        hint={cells.clone_label_hint}
        value={form.label}
        onInput={(label) => set({ label })}
        autocomplete="off"
        autofocus
      />
      <Checkbox label={cells.clone_deep} checked={deep} onChange={chooseDeep} />
      <Counted of={preview}>{cells.clone_about}</Counted>
    </FormDialog>
  )
}
