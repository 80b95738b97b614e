import { ActorName } from '../api/actor-name.tsx'
import { type RoleGrant, type Session, signedIn } from '../api/session.ts'
import { words } from '../copy/common.ts'
import { me } from '../copy/me.ts'
import { DataTable } from '../ui/data-table.tsx'
import { shortId } from '../ui/id.tsx'
import { Empty } from '../ui/resource.tsx'
import { Time, Until } from '../ui/time.tsx'

export function Roles() {
  const { role_grants, actors } = signedIn.value as Session
  if (role_grants.length === 0)
    return (
      <Empty icon="shield" title={me.no_roles}>
        {me.no_roles_about}
      </Empty>
    )
  return (
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
          cell: ({ granted_by }) =>
            granted_by === null ? (
              me.the_server
            ) : actors.some(({ id }) => id === granted_by) ? (
              me.yourself
            ) : (
              <ActorName id={granted_by} />
            ),
        },
      ]}
    />
  )
}

const placeOf = ({ scope_kind, scope_id }: RoleGrant): string =>
  scope_id ? `${scope_kind} ${shortId(scope_id)}` : words.everywhere
