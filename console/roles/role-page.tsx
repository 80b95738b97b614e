import { EventRows } from '../api/event-rows.tsx'
import { useCall, usePages } from '../api/query.ts'
import { words } from '../copy/common.ts'
import { roles } from '../copy/roles.ts'
import { place, setQuery, to } from '../lib/router.ts'
import type { PageProps } from '../routes.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { shortId } from '../ui/id.tsx'
import { RowLink } from '../ui/link.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, More, Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { Time, Until } from '../ui/time.tsx'
import { GiveTo } from './give-to.tsx'

/** One role, and who holds it. */
export default function RolePage({ params: { name = '' } }: PageProps) {
  const registry = useCall('registry_list', {})
  const role = registry.data?.roles.find((one) => one.name === name)
  const count = useCall('role_holder_list', { role: name, limit: 1 }).data?.count
  const holders = usePages('role_holder_list', { role: name }, (page) => page.holders)
  if (registry.data && !role)
    return (
      <Page title={name} back={{ href: to('/roles'), label: roles.title }}>
        <Empty icon="shield" title={roles.missing} />
      </Page>
    )
  const isGiving = place.value.query.get('dialog') === 'give'
  return (
    <Page
      title={name}
      back={{ href: to('/roles'), label: roles.title }}
      actions={
        role?.grant_paths.includes('admin') && (
          <Button kind="primary" icon="user-plus" shortcut="r" onClick={() => setQuery({ dialog: 'give' })}>
            {roles.give}
          </Button>
        )
      }
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
      <History role={name} />
      {isGiving && <GiveTo role={name} onClose={() => setQuery({ dialog: null })} />}
    </Page>
  )
}

/** The latest changes of this role: the log is not indexed by role, so it is read back in steps. */
function History({ role }: { role: string }) {
  const looked = usePages('audit_log_role_grant_history', {}, ({ events }) => events)
  return (
    <section class="section">
      <header>
        <h2>{roles.history}</h2>
        <span class="soft">{looked.data && roles.history_about(looked.data.length, looked.hasMore)}</span>
        <a class="push" href={to('/audit', { event: 'role_grant_create,role_grant_revoke' })}>
          {roles.whole_history}
        </a>
      </header>
      <Resource of={looked} isEmpty={() => false}>
        {(events) => {
          const rows = events.filter(({ metadata }) => metadata?.role === role)
          return rows.length > 0 ? <EventRows rows={rows} /> : <p class="soft">{roles.no_history}</p>
        }}
      </Resource>
      <More of={looked} verb={words.look_back} />
    </section>
  )
}
