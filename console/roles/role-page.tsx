import { useCall, usePages } from '../api/query.ts'
import { words } from '../copy/common.ts'
import { roles } from '../copy/roles.ts'
import { to } from '../lib/router.ts'
import type { PageProps } from '../routes.ts'
import { DataTable } from '../ui/data-table.tsx'
import { shortId } from '../ui/id.tsx'
import { RowLink } from '../ui/link.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { Time, Until } from '../ui/time.tsx'

/** One role, and who holds it. */
export default function RolePage({ params: { name = '' } }: PageProps) {
  const role = useCall('registry_list', {}).data?.roles.find((one) => one.name === name)
  const count = useCall('role_holder_list', { role: name, limit: 1 }).data?.count
  const holders = usePages('role_holder_list', { role: name }, (page) => page.holders)
  return (
    <Page
      title={name}
      back={{ href: to('/roles'), label: roles.title }}
      about={
        <>
          {role?.description && <Text long>{role.description}</Text>}
          {typeof count === 'number' && <span>{roles.counted(count)}</span>}
        </>
      }
    >
      <Resource
        of={holders}
        empty={
          <Empty icon="shield" title={roles.nobody}>
            {roles.nobody_about}
          </Empty>
        }
      >
        {(rows) => (
          <DataTable
            label={roles.holders}
            rows={rows}
            keyOf={({ role_grant }) => role_grant.id}
            hasMore={holders.hasMore}
            more={holders.more}
            columns={[
              {
                head: roles.holder,
                cell: ({ account, actor }) => (
                  <RowLink href={to(`/people/${account.id}`)}>
                    <Text>
                      {actor.name === account.username
                        ? account.username
                        : `${actor.name} (${account.username})`}
                    </Text>
                  </RowLink>
                ),
              },
              {
                head: roles.where,
                cell: ({ role_grant: { scope_kind, scope_id } }) =>
                  scope_id ? `${scope_kind} ${shortId(scope_id)}` : words.everywhere,
              },
              {
                head: roles.since,
                label: roles.since,
                cell: ({ role_grant }) => <Time at={role_grant.created_at} />,
              },
              {
                head: roles.ends,
                label: roles.ends,
                cell: ({ role_grant: { expires_at } }) =>
                  expires_at ? <Until at={expires_at} /> : words.never,
              },
            ]}
          />
        )}
      </Resource>
    </Page>
  )
}
