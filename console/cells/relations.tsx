import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { CellLink } from '../api/cell-name.tsx'
import { CellPicker } from '../api/cell-picker.tsx'
import { call } from '../api/client.ts'
import { editRows, type Pages, spoil, usePages } from '../api/query.ts'
import { useRun } from '../api/run.ts'
import { undo, useSend } from '../api/send.ts'
import { acting } from '../api/session.ts'
import { cellLabel, cells } from '../copy/cells.ts'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { useDraft } from '../lib/draft.ts'
import { Button } from '../ui/button.tsx'
import { Fault } from '../ui/fault.tsx'
import { Field } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { More, Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { toast } from '../ui/toast.tsx'
import type { PartProps } from './cell-page.tsx'
import { type End, RelationGraph } from './relation-graph.tsx'

const spoils = ['cell_field_list', 'cell_get', 'cell_audit_list'] as const

/** Named links to other cells, and what leads here: links, and cells that have it as an item. */
export function Relations({ got: { cell, can_edit } }: PartProps) {
  const away = usePages('cell_field_list', { source_id: cell.id }, ({ fields }) =>
    fields.map(({ name, target_id }): End => ({ name, id: target_id })),
  )
  const here = usePages('cell_field_list', { target_id: cell.id }, ({ fields }) =>
    fields.map(({ name, source_id }): End => ({ name, id: source_id })),
  )
  const holders = usePages('cell_item_list', { child_id: cell.id }, ({ items }) =>
    items.map(({ parent_id, position }): End => ({ name: cells.item_at(position), id: parent_id })),
  )
  const remove = useRemove(cell.id)
  const all = [...(here.data ?? []), ...(holders.data ?? [])]
  const isKnown = here.data && holders.data
  return (
    <>
      {can_edit && <AddRelation source_id={cell.id} />}
      <Fault text={remove.error && explain(remove.error)} />
      {isKnown && away.data && all.length + away.data.length > 0 && (
        <RelationGraph
          label={cellLabel(cell)}
          here={all}
          away={away.data}
          isMore={{ here: here.hasMore || holders.hasMore, away: away.hasMore }}
        />
      )}
      <div class="columns">
        <Ends
          title={cells.leads_to}
          of={away}
          onDelete={can_edit ? remove.send : undefined}
          action={(end) =>
            can_edit && (
              <Button small onClick={() => void remove.send(end)}>
                {cells.remove}
                <span class="hidden-text">{end.name}</span>
              </Button>
            )
          }
        />
        <Ends title={cells.links_here} of={here} />
        {holders.data && holders.data.length > 0 && <Ends title={cells.holds_it} of={holders} />}
      </div>
    </>
  )
}

/** One direction as a list; arrows move from link to link, Delete removes one if allowed. */
function Ends({
  title,
  of,
  action,
  onDelete,
}: {
  title: string
  of: Pages<End>
  action?: (end: End) => ComponentChildren
  onDelete?: ((end: End) => unknown) | undefined
}) {
  const onKeyDown = (event: KeyboardEvent & { currentTarget: HTMLElement }, ends: readonly End[]): void => {
    const links = [...event.currentTarget.querySelectorAll('a')]
    const at = links.indexOf(event.target as HTMLAnchorElement)
    const next = links[at + ({ ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0)]
    if (at < 0 || !next) return
    if (event.key === 'Delete' && onDelete) {
      const after = links[at + 1] ?? links[at - 1]
      if (after) after.focus()
      else document.querySelector<HTMLElement>('h1')?.focus()
      onDelete(ends[at] as End)
    } else if (next !== event.target) next.focus()
    else return
    event.preventDefault()
  }
  return (
    <section class="section">
      <h2>{title}</h2>
      <Resource of={of} empty={<p class="soft">{cells.none_here}</p>}>
        {(ends) => (
          <ul class="list" onKeyDown={(event) => onKeyDown(event, ends)}>
            {ends.map((end) => (
              <li key={`${end.id} ${end.name}`}>
                <span class="grow">
                  <span class="soft">
                    <Text>{end.name}</Text>
                  </span>{' '}
                  <CellLink id={end.id} />
                </span>
                {action?.(end)}
              </li>
            ))}
          </ul>
        )}
      </Resource>
      <More of={of} />
    </section>
  )
}

/** Removes at once; undone by setting the same relation again. */
function useRemove(source_id: string) {
  const change = async (run: () => Promise<unknown>): Promise<void> => {
    try {
      await run()
    } finally {
      spoil(...spoils)
    }
  }
  const again = ({ name, id }: End) =>
    change(() => call('cell_field_set', { source_id, name, target_id: id }, acting.peek()))
  return useRun(
    (end: End) => {
      editRows('cell_field_list', { source_id }, 'fields', (fields: { name: string }[]) =>
        fields.filter(({ name }) => name !== end.name),
      )
      return change(async () => {
        await call('cell_field_delete', { source_id, name: end.name }, acting.peek())
      })
    },
    {
      done: (_, end) =>
        toast(cells.relation_removed, { label: words.undo, run: () => void undo(() => again(end)) }),
    },
  )
}

function AddRelation({ source_id }: { source_id: string }) {
  const { form, set } = useDraft('relation', { name: '' })
  const [target_id, setTarget] = useState('')
  const add = useSend('cell_field_set', { spoils, done: () => toast(cells.relation_added) })
  const submit = async (): Promise<void> => {
    if (!target_id || !(await add.send({ source_id, name: form.name.trim(), target_id }))) return
    set({ name: '' })
    setTarget('')
  }
  return (
    <Form class="card stack" onSubmit={submit}>
      <Fault text={add.error && explain(add.error)} />
      <div class="share-form">
        <Field
          label={cells.relation_name}
          value={form.name}
          onInput={(name) => set({ name })}
          autocomplete="off"
        />
        <CellPicker label={cells.relation_target} value={target_id} onChange={setTarget} />
        <Button type="submit" isBusy={add.isBusy} wait={add.wait} disabled={!target_id && cells.cell_missing}>
          {cells.add_relation}
        </Button>
      </div>
      <p class="soft small">{cells.find_cell_hint}</p>
    </Form>
  )
}
