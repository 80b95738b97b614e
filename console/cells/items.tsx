import { useState } from 'preact/hooks'
import type { Output } from '../api/client.ts'
import { usePages } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { cells } from '../copy/cells.ts'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { between } from '../lib/position.ts'
import { Button } from '../ui/button.tsx'
import { Fault } from '../ui/fault.tsx'
import { Field } from '../ui/field.tsx'
import { Menu } from '../ui/menu.tsx'
import { Empty, Resource } from '../ui/resource.tsx'
import { toast } from '../ui/toast.tsx'
import { CellLink } from './cell-link.tsx'
import type { PartProps } from './cell-page.tsx'

type Item = Output<'cell_item_list'>['items'][number]
const spoils = ['cell_item_list', 'cell_get', 'cell_audit_list'] as const

/** Other cells in an order that people set. */
export function Items({ got: { cell, can_edit } }: PartProps) {
  const list = usePages('cell_item_list', { parent_id: cell.id }, ({ items }) => items)
  const items = list.data ?? []
  return (
    <>
      {can_edit && (
        <AddItem parent_id={cell.id} last={list.hasMore ? undefined : (items.at(-1)?.position ?? null)} />
      )}
      <Resource
        of={list}
        empty={
          <Empty icon="list" title={cells.no_items}>
            {cells.no_items_about}
          </Empty>
        }
      >
        {(rows) => (
          <ol class="list">
            {rows.map((item, index) => (
              <li key={item.position}>
                <span class="soft">{index + 1}</span>
                <span class="grow">
                  <CellLink id={item.child_id} all={rows.map((one) => one.child_id)} />
                </span>
                {can_edit && <Actions items={rows} index={index} />}
              </li>
            ))}
          </ol>
        )}
      </Resource>
      {list.hasMore && <Button onClick={list.more}>{words.more_rows}</Button>}
    </>
  )
}

function Actions({ items, index }: { items: readonly Item[]; index: number }) {
  const item = items[index] as Item
  const move = useSend('cell_item_move', { spoils })
  const remove = useSend('cell_item_delete', { spoils })
  const insert = useSend('cell_item_insert', { spoils })
  const { parent_id, child_id, position } = item
  /** Between the neighbours of the place where it goes. */
  const moveTo = async (place: number): Promise<void> => {
    const others = items.filter((one) => one !== item)
    const new_position = between(others[place - 1]?.position ?? null, others[place]?.position ?? null)
    if (await move.send({ parent_id, position, new_position })) toast(cells.moved(place + 1, items.length))
  }
  const error = move.error ?? remove.error
  return (
    <>
      <Menu
        label={words.more_actions}
        items={[
          ...(index > 0 ? [{ label: cells.move_up, onClick: () => void moveTo(index - 1) }] : []),
          ...(index < items.length - 1
            ? [{ label: cells.move_down, onClick: () => void moveTo(index + 1) }]
            : []),
          {
            label: cells.remove,
            onClick: async () => {
              if (!(await remove.send({ parent_id, position }))) return
              toast(cells.relation_removed, {
                label: words.undo,
                run: () => void insert.send({ parent_id, child_id, position }),
              })
            },
          },
        ]}
      />
      {error && <Fault text={explain(error)} />}
    </>
  )
}

/** At the end, which has to be on screen. */
function AddItem({ parent_id, last }: { parent_id: string; last: string | null | undefined }) {
  const [child_id, setChild] = useState('')
  const insert = useSend('cell_item_insert', { spoils })
  const submit = async (): Promise<void> => {
    if (last === undefined) return
    if (await insert.send({ parent_id, child_id: child_id.trim(), position: between(last, null) }))
      setChild('')
  }
  return (
    <form
      class="card stack"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
    >
      <Fault text={insert.error && explain(insert.error)} />
      <div class="share-form">
        <Field label={cells.item_id} value={child_id} onInput={setChild} autocomplete="off" mono />
        <Button type="submit" isBusy={insert.isBusy} disabled={last === undefined && words.more_rows}>
          {cells.add_item}
        </Button>
      </div>
    </form>
  )
}
