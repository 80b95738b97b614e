import { useTold } from '../api/run.ts'
import { useSend } from '../api/send.ts'
import { isAdmin } from '../api/session.ts'
import { cells } from '../copy/cells.ts'
import { words } from '../copy/common.ts'
import { place, setQuery } from '../lib/router.ts'
import { AskText } from '../ui/ask-text.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Menu } from '../ui/menu.tsx'
import { toast } from '../ui/toast.tsx'
import type { PartProps } from './cell-page.tsx'
import { CloneCell } from './clone-cell.tsx'
import { DeleteCell } from './delete-cell.tsx'

type Open = 'public' | 'label' | 'path' | 'clone' | 'delete' | null
export type DialogOf = PartProps & { onClose(): void }
const spoils = ['cell_get', 'cell_list', 'cell_audit_list'] as const

/** Actions on a cell as a whole. */
export function CellMenu({ got }: PartProps) {
  // In the address, so that what is typed is kept if others take the page away.
  const open = place.value.query.get('dialog')
  const setOpen = (dialog: Open): void => setQuery({ dialog })
  const update = useSend('cell_update', { spoils, done: () => toast(cells.is_private) })
  useTold(update.error)
  const { cell, can_edit, can_grant } = got
  const isPublic = cell.visibility === 'public'
  const close = (): void => setOpen(null)
  return (
    <>
      <Menu
        label={words.more_actions}
        items={[
          ...(can_edit ? [{ label: cells.rename, onClick: () => setOpen('label') }] : []),
          ...(can_grant
            ? [
                {
                  label: isPublic ? cells.make_private : cells.make_public,
                  onClick: () =>
                    isPublic
                      ? void update.send({ cell_id: cell.id, visibility: 'private' })
                      : setOpen('public'),
                },
              ]
            : []),
          ...(isAdmin.value ? [{ label: cells.set_path, onClick: () => setOpen('path') }] : []),
          { label: cells.clone, onClick: () => setOpen('clone') },
          ...(can_edit
            ? [{ label: cells.delete, danger: true, begins: true, onClick: () => setOpen('delete') }]
            : []),
        ]}
      />
      {open === 'public' && <MakePublic got={got} onClose={close} />}
      {open === 'label' && <Rename got={got} onClose={close} />}
      {open === 'path' && <SetPath got={got} onClose={close} />}
      {open === 'clone' && <CloneCell got={got} onClose={close} />}
      {open === 'delete' && <DeleteCell got={got} onClose={close} />}
    </>
  )
}

function MakePublic({ got: { cell }, onClose }: DialogOf) {
  const update = useSend('cell_update', { spoils, done: () => toast(cells.is_public) })
  const confirm = async (): Promise<void> => {
    if (await update.send({ cell_id: cell.id, visibility: 'public' })) onClose()
  }
  return (
    <Confirm
      title={cells.public_question}
      verb={cells.make_public}
      kind="primary"
      onConfirm={() => void confirm()}
      onClose={onClose}
      of={update}
    >
      <p>{cells.public_about}</p>
    </Confirm>
  )
}

/** Changes only the label, whatever others save meanwhile. */
function Rename({ got: { cell }, onClose }: DialogOf) {
  const { label } = cell.data as { label?: unknown }
  const update = useSend('cell_update', { spoils, done: () => toast(cells.saved) })
  const submit = async (text: string): Promise<void> => {
    if (await update.send({ cell_id: cell.id, data_patch: { label: text || null } })) onClose()
  }
  return (
    <AskText
      title={cells.rename}
      verb={words.save}
      label={cells.label}
      hint={cells.label_hint}
      initial={typeof label === 'string' ? label : ''}
      of={update}
      onSubmit={(text) => void submit(text)}
      onClose={onClose}
    />
  )
}

function SetPath({ got: { cell }, onClose }: DialogOf) {
  const update = useSend('cell_update', { spoils, done: () => toast(cells.saved) })
  const submit = async (path: string): Promise<void> => {
    if (await update.send({ cell_id: cell.id, path: path || null })) onClose()
  }
  return (
    <AskText
      title={cells.set_path}
      verb={words.save}
      label={cells.path}
      hint={cells.path_hint}
      initial={cell.path ?? ''}
      maxlength={256}
      mono
      of={update}
      onSubmit={(path) => void submit(path)}
      onClose={onClose}
    />
  )
}
