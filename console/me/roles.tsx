import { useState } from 'preact/hooks'
import { ActorName } from '../api/actor-name.tsx'
import { useCall } from '../api/query.ts'
import { RoleOrigin } from '../api/role-origin.tsx'
import { useSend } from '../api/send.ts'
import { loadSession, type RoleGrant, type Session, signedIn } from '../api/session.ts'
import { origin, words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { me } from '../copy/me.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { shortId } from '../ui/id.tsx'
import { Empty } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { Time, Until } from '../ui/time.tsx'
import { toast } from '../ui/toast.tsx'

const placeOf = ({ scope_kind, scope_id }: RoleGrant): string =>
  scope_id ? `${scope_kind} ${shortId(scope_id)}` : words.everywhere

export function Roles() {
  const { role_grants, actors } = signedIn.value as Session
  const [shown, show] = useState<RoleGrant | null>(null)
  const [ending, end] = useState<string | null>(null)
  const open = useCall('registry_list', {}).data?.roles.filter(({ self_service }) => self_service) ?? []
  const isOpen = ({ role, scope_id }: RoleGrant): boolean =>
    scope_id === null && open.some(({ name }) => name === role)
  const free = open.filter(({ name }) => !role_grants.some((one) => one.role === name && isOpen(one)))
  return (
    <>
      {role_grants.length === 0 ? (
        <Empty icon="shield" title={me.no_roles}>
          {me.no_roles_about}
        </Empty>
      ) : (
        <DataTable
          label={me.tabs.roles}
          rows={role_grants}
          keyOf={({ id }) => id}
          columns={[
            { head: me.role, cell: ({ role }) => <strong>{role}</strong> },
            { head: me.where, cell: placeOf },
            { head: me.since, label: me.since, cell: ({ created_at }) => <Time at={created_at} /> },
            {
              head: me.ends,
              label: me.ends,
              cell: ({ expires_at }) => (expires_at ? <Until at={expires_at} /> : words.never),
            },
            {
              head: me.given_by,
              label: me.given_by,
              cell: (one) => (
                <button type="button" class="link" title={origin.ask} onClick={() => show(one)}>
                  <Giver of={one.granted_by} own={actors} />
                </button>
              ),
            },
            {
              head: me.give_up,
              end: true,
              width: '84px',
              cell: (one) =>
                isOpen(one) && (
                  <Button small onClick={() => end(one.role)}>
                    {me.give_up}
                    <span class="hidden-text">{one.role}</span>
                  </Button>
                ),
            },
          ]}
        />
      )}
      {free.length > 0 && (
        <section class="section">
          <h2>{me.takeable}</h2>
          <ul class="list">
            {free.map(({ name, description }) => (
              <li key={name}>
                <span class="grow">
                  <strong>{name}</strong> {description && <Text long>{description}</Text>}
                </span>
                <Take role={name} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {shown && <RoleOrigin grant={shown} onClose={() => show(null)} />}
      {ending && <GiveUp role={ending} onClose={() => end(null)} />}
    </>
  )
}

function Giver({ of, own }: { of: string | null; own: readonly { id: string }[] }) {
  if (of === null) return <span>{me.the_server}</span>
  return own.some(({ id }) => id === of) ? <span>{me.yourself}</span> : <ActorName id={of} />
}

function Take({ role }: { role: string }) {
  const take = useSend('self_service_role_set', {
    done: () => {
      toast(me.taken(role))
      void loadSession()
    },
  })
  return (
    <>
      <Fault text={take.error && explain(take.error)} />
      <Button
        small
        isBusy={take.isBusy}
        wait={take.wait}
        onClick={() => void take.send({ role, enabled: true })}
      >
        {me.take}
        <span class="hidden-text">{role}</span>
      </Button>
    </>
  )
}

function GiveUp({ role, onClose }: { role: string; onClose(): void }) {
  const end = useSend('self_service_role_set', {
    done: () => {
      toast(me.given_up(role))
      void loadSession()
    },
  })
  const confirm = async (): Promise<void> => {
    if (await end.send({ role, enabled: false })) onClose()
  }
  return (
    <Confirm
      title={me.give_up_question(role)}
      verb={me.give_up}
      onConfirm={() => void confirm()}
      onClose={onClose}
      of={end}
    >
      <p>{me.give_up_about(role)}</p>
    </Confirm>
  )
}
