import { useState } from 'preact/hooks'
import { cells } from '../copy/cells.ts'
import { words } from '../copy/common.ts'
import { type Json, merge } from '../lib/json.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Choices } from '../ui/field.tsx'
import { Value } from './change-list.tsx'

/** Two people saved: changes of different places are both kept, and the others are chosen place by place. */
export function ResolveConflict({
  base,
  theirs,
  mine,
  onTaken,
  onClose,
}: {
  base: Json
  theirs: Json
  mine: Json
  onTaken(merged: Json): void
  onClose(): void
}) {
  const [chosen, choose] = useState<Record<string, 'theirs' | 'mine'>>({})
  const { merged, conflicts } = merge(base, theirs, mine, ({ pointer }) => chosen[pointer] ?? 'mine')
  return (
    <Dialog
      title={cells.conflict_title}
      size="wide"
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button kind="primary" onClick={() => onTaken(merged ?? {})} autofocus>
            {cells.review}
          </Button>
        </>
      }
    >
      <p>{conflicts.length === 0 ? cells.conflict_merged : cells.conflict_about(conflicts.length)}</p>
      {conflicts.map(({ pointer, theirs, mine }) => (
        <div key={pointer} class="conflict">
          <Choices
            label={pointer || '/'}
            value={chosen[pointer] ?? 'mine'}
            options={[
              { value: 'theirs', label: cells.theirs },
              { value: 'mine', label: cells.mine_choice },
            ]}
            onChange={(side) => choose({ ...chosen, [pointer]: side })}
          />
          <Side name={cells.theirs} of={theirs} />
          <Side name={cells.mine_choice} of={mine} />
        </div>
      ))}
    </Dialog>
  )
}

const Side = ({ name, of }: { name: string; of: Json | undefined }) => (
  <div>
    <span class="soft small">{name}</span>
    <pre>
      <Value of={of} />
    </pre>
  </div>
)
