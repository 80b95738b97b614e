import { useId, useState } from 'preact/hooks'
import { ActorName } from '../api/actor-name.tsx'
import { ActorPicker, howToFind } from '../api/actor-picker.tsx'
import type { Output } from '../api/client.ts'
import { useCall, usePages } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { isAdmin } from '../api/session.ts'
import { cells } from '../copy/cells.ts'
import { explain } from '../copy/errors.ts'
import { useDraft } from '../lib/draft.ts'
import { Button } from '../ui/button.tsx'
import { Fault } from '../ui/fault.tsx'
import { Field, SelectField } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { shortId } from '../ui/id.tsx'
import { More, Resource } from '../ui/resource.tsx'
import { toast } from '../ui/toast.tsx'
import type { Got, PartProps } from './cell-page.tsx'
import { LeaveCell } from './leave-cell.tsx'

type Grant = Output<'cell_grant_list'>['grants'][number]
type Level = Grant['level']
const levels = (['viewer', 'editor'] as const).map((value) => ({ value, label: cells.levels[value] }))
const spoils = [
  'cell_grant_list',
  'cell_access_explain',
  'cell_get',
  'cell_audit_list',
  'audit_log_list',
] as const

/** With whom a cell is shared, and at which level. */
export function Sharing({ got }: PartProps) {
  if (!got.can_grant)
    return (
      <>
        <p class="soft">{got.can_edit ? cells.edit_only : cells.view_only}</p>
        <LeaveCell got={got} />
      </>
    )
  return (
    <>
      <ShareForm cell_id={got.cell.id} />
      <Grants got={got} />
      <p class="soft small">{cells.admins}</p>
    </>
  )
}

function Grants({ got: { cell } }: { got: Got }) {
  const list = usePages('cell_grant_list', { cell_id: cell.id }, ({ grants }) => grants)
  const hasRoles = list.data?.some(({ role }) => role !== null) === true
  const counted = useCall('cell_access_explain', { cell_id: cell.id, limit: 50 }, { enabled: hasRoles }).data
    ?.everyone?.grants
  return (
    <>
      <Resource of={list} isEmpty={() => false}>
        {(grants) => (
          <ul class="list">
            <li>
              <span class="grow">
                <ActorName id={cell.created_by} />
              </span>
              <span class="soft">{cells.owner_row}</span>
            </li>
            {grants.map((one) => (
              <li key={one.id}>
                <Row grant={one} holders={counted?.find(({ grant }) => grant.id === one.id)?.holders} />
              </li>
            ))}
            {grants.length === 0 && <li class="soft">{cells.not_shared}</li>}
          </ul>
        )}
      </Resource>
      <More of={list} />
    </>
  )
}

/** `holders`: how many people have the role now, once they are counted. */
function Row({ grant, holders }: { grant: Grant; holders: number | undefined }) {
  const set = useSend('cell_grant_create', { spoils, done: () => toast(cells.level_changed) })
  const stop = useSend('cell_grant_revoke', { spoils, done: () => toast(cells.stopped) })
  const error = set.error ?? stop.error
  const id = useId()
  const change = (level: Level): void =>
    void set.send({ cell_id: grant.cell_id, level, principal: principalOf(grant) })
  return (
    <>
      <span class="grow">
        <span id={`${id}-who`}>
          <Who grant={grant} />
        </span>{' '}
        {holders !== undefined && <span class="soft">{cells.holders_now(holders)}</span>}
      </span>
      <select
        id={`${id}-level`}
        class="input share-level"
        aria-label={cells.level}
        aria-labelledby={`${id}-level ${id}-who`}
        value={grant.level}
        onChange={(event) => change(event.currentTarget.value as Level)}
      >
        {levels.map(({ value, label }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
      <Button
        small
        isBusy={stop.isBusy}
        wait={stop.wait}
        onClick={() => void stop.send({ grant_id: grant.id })}
      >
        {cells.stop}
        <span class="hidden-text">
          <Who grant={grant} />
        </span>
      </Button>
      {error && <Fault text={explain(error)} />}
    </>
  )
}

const Who = ({ grant: { actor_id, role, scope_id } }: { grant: Grant }) =>
  actor_id ? (
    <ActorName id={actor_id} />
  ) : (
    <>
      {cells.holders(role ?? '')} {scope_id && <span class="soft">{cells.in_scope(shortId(scope_id))}</span>}
    </>
  )

const principalOf = ({ actor_id, role, scope_id }: Grant) =>
  actor_id ? { actor_id } : { role: role ?? '', ...(scope_id && { scope_id }) }

function ShareForm({ cell_id }: { cell_id: string }) {
  const [actor_id, setActor] = useState('')
  const { form, isDirty, set } = useDraft('share', { role: '', scope_id: '' })
  const { role, scope_id } = form
  const [who, setWho] = useState<'person' | 'role'>(isDirty ? 'role' : 'person')
  const [level, setLevel] = useState<Level>('viewer')
  const share = useSend('cell_grant_create', { spoils, done: () => toast(cells.shared_now) })
  const roles =
    usePages('admin_account_list', {}, ({ grantable_roles }) => grantable_roles, {
      limit: 1,
      enabled: isAdmin.value,
    }).data ?? []
  const submit = async (): Promise<void> => {
    const principal =
      who === 'person' ? { actor_id } : { role, ...(scope_id.trim() && { scope_id: scope_id.trim() }) }
    if (!(await share.send({ cell_id, level, principal }))) return
    setActor('')
    set({ role: '', scope_id: '' })
  }
  return (
    <Form class="card stack" onSubmit={submit}>
      <Fault text={share.error && explain(share.error)} />
      <div class="share-form">
        <SelectField
          label={cells.share_with}
          value={who}
          options={[
            { value: 'person', label: cells.a_person },
            { value: 'role', label: cells.a_role },
          ]}
          onChange={setWho}
        />
        {who === 'person' ? (
          <ActorPicker label={cells.person} value={actor_id} onChange={setActor} />
        ) : (
          <>
            {roles.length > 0 ? (
              <SelectField
                label={cells.role_name}
                value={role}
                options={[
                  { value: '', label: '' },
                  ...[...new Set(roles)].map((value) => ({ value, label: value })),
                ]}
                onChange={(role) => set({ role })}
              />
            ) : (
              <Field
                label={cells.role_name}
                value={role}
                onInput={(role) => set({ role })}
                autocomplete="off"
              />
            )}
            <Field
              label={cells.role_scope}
              value={scope_id}
              onInput={(scope_id) => set({ scope_id })}
              autocomplete="off"
              mono
            />
          </>
        )}
        <SelectField label={cells.level} value={level} options={levels} onChange={setLevel} />
        <Button
          type="submit"
          kind="primary"
          isBusy={share.isBusy}
          wait={share.wait}
          disabled={who === 'person' ? !actor_id && howToFind() : !role && cells.role_missing}
        >
          {cells.share}
        </Button>
      </div>
    </Form>
  )
}
