import { useCount } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { cellLabel, cells } from '../copy/cells.ts'
import { go, to } from '../lib/router.ts'
import { Counted, notCounted } from '../ui/counted.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { isTypable } from '../ui/text.tsx'
import { toast } from '../ui/toast.tsx'
import type { DialogOf } from './cell-menu.tsx'

/** First counts what it cuts off; if that concerns others, the name must be typed. */
export function DeleteCell({ got: { cell }, onClose }: DialogOf) {
  const preview = useCount('cell_delete_preview', { cell_id: cell.id })
  const remove = useSend('cell_delete', { spoils: ['cell_list'], done: () => toast(cells.deleted) })
  const label = cellLabel(cell)
  const name = isTypable(label) ? label : cell.id.slice(0, 8)
  const counts = preview.data
  const confirm = async (): Promise<void> => {
    if (await remove.send({ cell_id: cell.id })) go(to('/cells'))
  }
  // Null: shared, but the reader may not see with whom.
  const isOthers = counts && (counts.linked_from > 0 || counts.grants !== 0)
  return (
    <Confirm
      name={isOthers ? name : null}
      title={cells.delete_question(name)}
      verb={cells.delete_verb}
      onConfirm={() => void confirm()}
      onClose={onClose}
      of={remove}
      disabled={notCounted(preview)}
    >
      <Counted of={preview}>{cells.delete_about}</Counted>
    </Confirm>
  )
}
