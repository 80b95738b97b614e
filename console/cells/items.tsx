import { useState } from 'preact/hooks'
import { CellPicker } from '../api/cell-picker.tsx'
import { usePages } from '../api/query.ts'
import { useRun } from '../api/run.ts'
import { cells } from '../copy/cells.ts'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { Button } from '../ui/button.tsx'
import { Fault } from '../ui/fault.tsx'
import { Form } from '../ui/form.tsx'
import { Empty, More, Resource } from '../ui/resource.tsx'
import type { PartProps } from './cell-page.tsx'
import { useItemChanges } from './item-changes.ts'
import { ItemRows } from './item-rows.tsx'

/** Other cells in an order that people set. */
export function Items({ got: { cell, can_edit } }: PartProps) {
  const list = usePages('cell_item_list', { parent_id: cell.id }, ({ items }) => items)
  const changes = useItemChanges(cell.id)
  const items = list.data ?? []
  return (
    <>
      {can_edit && (
        <AddItem
          last={list.hasMore ? undefined : (items.at(-1)?.position ?? null)}
          append={changes.append}
          onAdded={list.retry}
        />
      )}
      <Fault text={changes.error && explain(changes.error)} />
      <Resource
        of={list}
        empty={
          <Empty icon="list" title={cells.no_items}>
            {cells.no_items_about}
          </Empty>
        }
      >
        {(rows) => <ItemRows rows={rows} changes={can_edit ? changes : null} />}
      </Resource>
      <More of={list}>
        <span class="soft">{cells.first_items(items.length)}</span>
      </More>
    </>
  )
}

/** Appends an item, which needs the end of the list on screen. */
function AddItem({
  last,
  append,
  onAdded,
}: {
  last: string | null | undefined
  append(child_id: string, low: string | null): Promise<string>
  onAdded(): void
}) {
  const [child_id, setChild] = useState('')
  const add = useRun((low: string | null) => append(child_id, low))
  const submit = async (): Promise<void> => {
    if (last === undefined || !child_id || !(await add.send(last))) return
    setChild('')
    onAdded()
  }
  return (
    <Form class="card stack" onSubmit={submit}>
      <Fault text={add.error && explain(add.error)} />
      <div class="share-form">
        <CellPicker label={cells.item} value={child_id} onChange={setChild} />
        <Button
          type="submit"
          isBusy={add.isBusy}
          wait={add.wait}
          disabled={last === undefined ? words.more_rows : !child_id && cells.cell_missing}
        >
          {cells.add_item}
        </Button>
      </div>
      <p class="soft small">{cells.find_cell_hint}</p>
    </Form>
  )
}
