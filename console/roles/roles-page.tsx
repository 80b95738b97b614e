import { useCall } from '../api/query.ts'
import { list } from '../copy/common.ts'
import { roles } from '../copy/roles.ts'
import { to } from '../lib/router.ts'
import { DataTable } from '../ui/data-table.tsx'
import { RowLink } from '../ui/link.tsx'
import { Page } from '../ui/page.tsx'
import { Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { Words } from '../ui/words.tsx'

const builtin = ['keeper', 'admin']

export default function RolesPage() {
  const registry = useCall('registry_list', {})
  return (
    <Page title={roles.title} about={roles.about}>
      <Resource of={registry}>
        {({ roles: all }) => (
          <div class="stack">
            <DataTable
              label={roles.title}
              rows={all}
              keyOf={({ name }) => name}
              columns={[
                {
                  head: roles.role,
                  cell: ({ name }) => <RowLink href={to(`/roles/${name}`)}>{name}</RowLink>,
                },
                {
                  head: roles.description,
                  width: 'minmax(0, 2fr)',
                  cell: ({ description }) => description && <Text long>{description}</Text>,
                },
                {
                  head: roles.given,
                  label: roles.given,
                  cell: ({ grant_paths, self_service }) =>
                    list([
                      ...grant_paths
                        .filter((path) => path !== 'self_service')
                        .map((path) => roles.paths[path] ?? path),
                      ...(self_service ? [roles.self_service] : []),
                    ]),
                },
                {
                  head: roles.held,
                  width: '96px',
                  label: roles.held,
                  cell: ({ name }) => <Holders role={name} />,
                },
                { head: roles.kinds, label: roles.kinds, cell: ({ scope_kinds }) => list(scope_kinds) },
              ]}
            />
            {all.every(({ name }) => builtin.includes(name)) && (
              <div class="card stack-tight">
                <p>
                  <Words>{roles.only_builtin}</Words>
                </p>
                <pre>{roles.example}</pre>
              </div>
            )}
          </div>
        )}
      </Resource>
    </Page>
  )
}

/** Counted to a thousand. */
function Holders({ role }: { role: string }) {
  const count = useCall('role_holder_list', { role, limit: 1 }).data?.count
  return typeof count === 'number' ? roles.number(count) : null
}
