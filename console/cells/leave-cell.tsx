import { useState } from 'preact/hooks'
import { useCall } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { type Session, signedIn } from '../api/session.ts'
import { cellLabel, cells } from '../copy/cells.ts'
import { go, to } from '../lib/router.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { toast } from '../ui/toast.tsx'
import type { PartProps } from './cell-page.tsx'

/** Gives up a share by name; what comes with a role, or is public, cannot be left. */
export function LeaveCell({ got: { cell } }: PartProps) {
  const [isOpen, setOpen] = useState(false)
  const actor_id = (signedIn.value as Session).actor?.id ?? ''
  const explained = useCall('cell_access_explain', { cell_id: cell.id, actor_id })
  const grant_id = explained.data?.reasons.find(({ via }) => via === 'actor_grant')?.cell_grant_id
  if (!grant_id) return null
  return (
    <div>
      <Button onClick={() => setOpen(true)}>{cells.leave}</Button>
      {isOpen && <Leave label={cellLabel(cell)} grant_id={grant_id} onClose={() => setOpen(false)} />}
    </div>
  )
}

function Leave({ label, grant_id, onClose }: { label: string; grant_id: string; onClose(): void }) {
  const leave = useSend('cell_grant_revoke', {
    spoils: ['cell_list', 'cell_get', 'cell_access_explain'],
    done: ({ still_admitted }) => toast(still_admitted ? cells.left_partly : cells.left),
  })
  const confirm = async (): Promise<void> => {
    const left = await leave.send({ grant_id })
    if (!left) return
    onClose()
    if (!left.still_admitted) go(to('/cells'))
  }
  return (
    <Confirm
      title={cells.leave_question(label)}
      verb={cells.leave}
      onConfirm={() => void confirm()}
      onClose={onClose}
      of={leave}
    >
      <p>{cells.leave_about}</p>
    </Confirm>
  )
}
