import { useState } from 'preact/hooks'
import { useCall } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { isAdmin } from '../api/session.ts'
import { cellLabel, cells } from '../copy/cells.ts'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { go, to } from '../lib/router.ts'
import { Button } from '../ui/button.tsx'
import { Confirm, Dialog } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { Checkbox, Field } from '../ui/field.tsx'
import { Menu } from '../ui/menu.tsx'
import { toast } from '../ui/toast.tsx'
import type { PartProps } from './cell-page.tsx'

type Open = 'public' | 'path' | 'clone' | 'delete' | null
type Props = PartProps & { onClose(): void }
const spoils = ['cell_get', 'cell_list', 'cell_audit_list'] as const

/** What one does with a cell as a whole. */
export function CellMenu({ got }: PartProps) {
  const [open, setOpen] = useState<Open>(null)
  const update = useSend('cell_update', { spoils })
  const { cell, can_grant } = got
  const isPublic = cell.visibility === 'public'
  const hide = async (): Promise<void> => {
    if (await update.send({ cell_id: cell.id, visibility: 'private' })) toast(cells.is_private)
  }
  const close = (): void => setOpen(null)
  return (
    <>
      <Menu
        label={words.more_actions}
        items={[
          ...(can_grant
            ? [
                {
                  label: isPublic ? cells.make_private : cells.make_public,
                  onClick: () => (isPublic ? void hide() : setOpen('public')),
                },
              ]
            : []),
          ...(isAdmin.value ? [{ label: cells.set_path, onClick: () => setOpen('path') }] : []),
          { label: cells.clone, onClick: () => setOpen('clone') },
          ...(can_grant ? [{ label: cells.delete, danger: true, onClick: () => setOpen('delete') }] : []),
        ]}
      />
      {open === 'public' && <MakePublic got={got} onClose={close} />}
      {open === 'path' && <SetPath got={got} onClose={close} />}
      {open === 'clone' && <Clone got={got} onClose={close} />}
      {open === 'delete' && <Delete got={got} onClose={close} />}
    </>
  )
}

function MakePublic({ got: { cell }, onClose }: Props) {
  const update = useSend('cell_update', { spoils })
  const confirm = async (): Promise<void> => {
    if (!(await update.send({ cell_id: cell.id, visibility: 'public' }))) return
    onClose()
    toast(cells.is_public)
  }
  return (
    <Confirm
      title={cells.public_question}
      verb={cells.make_public}
      kind="primary"
      onConfirm={() => void confirm()}
      onClose={onClose}
      isBusy={update.isBusy}
      fault={update.error && explain(update.error)}
    >
      <p>{cells.public_about}</p>
    </Confirm>
  )
}

function SetPath({ got: { cell }, onClose }: Props) {
  const [path, setPath] = useState(cell.path ?? '')
  const update = useSend('cell_update', { spoils })
  const submit = async (): Promise<void> => {
    if (!(await update.send({ cell_id: cell.id, path: path || null }))) return
    onClose()
    toast(cells.saved)
  }
  return (
    <Dialog
      title={cells.set_path}
      onClose={onClose}
      onSubmit={() => void submit()}
      foot={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={update.isBusy}>
            {words.save}
          </Button>
        </>
      }
    >
      <Fault text={update.error && explain(update.error)} />
      <Field
        label={cells.path}
        hint={cells.path_hint}
        value={path}
        onInput={setPath}
        maxlength={256}
        mono
        autofocus
      />
    </Dialog>
  )
}

function Clone({ got: { cell }, onClose }: Props) {
  const [isDeep, setDeep] = useState(false)
  const clone = useSend('cell_clone', { spoils: ['cell_list'] })
  const submit = async (): Promise<void> => {
    const made = await clone.send({ source_id: cell.id, deep: isDeep })
    if (!made) return
    toast(cells.cloned)
    go(to(`/cells/${made.cell.id}`))
  }
  return (
    <Dialog
      title={cells.clone}
      onClose={onClose}
      onSubmit={() => void submit()}
      foot={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={clone.isBusy} wait={clone.wait}>
            {cells.clone}
          </Button>
        </>
      }
    >
      <Fault text={clone.error && explain(clone.error)} />
      <Checkbox label={cells.clone_deep} checked={isDeep} onChange={setDeep} />
    </Dialog>
  )
}

function Delete({ got: { cell }, onClose }: Props) {
  const [typed, setTyped] = useState('')
  const grants = useCall('cell_grant_list', { cell_id: cell.id, limit: 500 }).data?.grants.length
  const remove = useSend('cell_delete', { spoils: ['cell_list'] })
  const name = cellLabel(cell)
  const submit = async (): Promise<void> => {
    if (typed !== name || !(await remove.send({ cell_id: cell.id }))) return
    toast(cells.deleted)
    go(to('/cells'))
  }
  return (
    <Dialog
      title={cells.delete_question(name)}
      onClose={onClose}
      onSubmit={() => void submit()}
      foot={
        <>
          <Button onClick={onClose} autofocus>
            {words.cancel}
          </Button>
          <Button
            type="submit"
            kind="sure"
            isBusy={remove.isBusy}
            disabled={typed !== name && cells.delete_type(name)}
          >
            {cells.delete_verb}
          </Button>
        </>
      }
    >
      {grants !== undefined && <p>{cells.delete_about(grants)}</p>}
      <Fault text={remove.error && explain(remove.error)} />
      <Field label={cells.delete_type(name)} value={typed} onInput={setTyped} autocomplete="off" />
    </Dialog>
  )
}
