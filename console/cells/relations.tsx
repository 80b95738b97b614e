import { useState } from 'preact/hooks'
import { usePages } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { cells } from '../copy/cells.ts'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { Button } from '../ui/button.tsx'
import { Fault } from '../ui/fault.tsx'
import { Field } from '../ui/field.tsx'
import { Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { toast } from '../ui/toast.tsx'
import { CellLink } from './cell-link.tsx'
import type { PartProps } from './cell-page.tsx'

const spoils = ['cell_field_list', 'cell_get', 'cell_audit_list'] as const

/** Named links to other cells, and those that lead here. */
export function Relations({ got: { cell, can_edit } }: PartProps) {
  const away = usePages('cell_field_list', { source_id: cell.id }, ({ fields }) => fields)
  const here = usePages('cell_field_list', { target_id: cell.id }, ({ fields }) => fields)
  return (
    <>
      {can_edit && <AddRelation source_id={cell.id} />}
      <div class="columns">
        <section class="section">
          <h2>{cells.leads_to}</h2>
          <Resource of={away} empty={<p class="soft">{cells.none_here}</p>}>
            {(fields) => (
              <ul class="list">
                {fields.map(({ name, target_id }) => (
                  <li key={name}>
                    <span class="grow">
                      <span class="soft">
                        <Text>{name}</Text>
                      </span>{' '}
                      <CellLink id={target_id} all={fields.map((one) => one.target_id)} />
                    </span>
                    {can_edit && <Remove source_id={cell.id} name={name} target_id={target_id} />}
                  </li>
                ))}
              </ul>
            )}
          </Resource>
        </section>
        <section class="section">
          <h2>{cells.links_here}</h2>
          <Resource of={here} empty={<p class="soft">{cells.none_here}</p>}>
            {(fields) => (
              <ul class="list">
                {fields.map(({ name, source_id }) => (
                  <li key={`${source_id} ${name}`}>
                    <span class="grow">
                      <CellLink id={source_id} all={fields.map((one) => one.source_id)} />{' '}
                      <span class="soft">
                        <Text>{name}</Text>
                      </span>
                    </span>
                  </li>
                ))}
              </ul>
            )}
          </Resource>
        </section>
      </div>
    </>
  )
}

/** Undone by inserting the same relation again. */
function Remove({ source_id, name, target_id }: { source_id: string; name: string; target_id: string }) {
  const remove = useSend('cell_field_delete', { spoils })
  const again = useSend('cell_field_set', { spoils })
  return (
    <Button
      small
      isBusy={remove.isBusy}
      onClick={async () => {
        if (!(await remove.send({ source_id, name }))) return
        toast(cells.relation_removed, {
          label: words.undo,
          run: () => void again.send({ source_id, name, target_id }),
        })
      }}
    >
      {cells.remove}
      <span class="hidden-text">{name}</span>
    </Button>
  )
}

function AddRelation({ source_id }: { source_id: string }) {
  const [name, setName] = useState('')
  const [target_id, setTarget] = useState('')
  const add = useSend('cell_field_set', { spoils })
  const submit = async (): Promise<void> => {
    if (!(await add.send({ source_id, name: name.trim(), target_id: target_id.trim() }))) return
    setName('')
    setTarget('')
    toast(cells.relation_added)
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
      <Fault text={add.error && explain(add.error)} />
      <div class="share-form">
        <Field label={cells.relation_name} value={name} onInput={setName} autocomplete="off" />
        <Field label={cells.relation_target} value={target_id} onInput={setTarget} autocomplete="off" mono />
        <Button type="submit" isBusy={add.isBusy} wait={add.wait}>
          {cells.add_relation}
        </Button>
      </div>
    </form>
  )
}
