import type { Output } from '../api/client.ts'
import { useCall, usePages } from '../api/query.ts'
import { words } from '../copy/common.ts'
import { people, rolesText } from '../copy/people.ts'
import { place, setQuery, to } from '../lib/router.ts'
import { Button, ButtonLink } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Checkbox, Field, SelectField } from '../ui/field.tsx'
import { RowLink } from '../ui/link.tsx'
import { Badge } from '../ui/note.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { Time } from '../ui/time.tsx'
import { useTypedFilter } from '../ui/typed-filter.ts'

type Entry = Output<'admin_account_list'>['accounts'][number]

export default function PeoplePage() {
  const { query } = place.value
  const [sought, role, deleted] = [query.get('q'), query.get('role'), query.get('deleted') !== null]
  const list = usePages(
    'admin_account_list',
    { include_deleted: deleted, query: sought?.trim() || null, role },
    ({ accounts }) => accounts,
  )
  const isFiltered = Boolean(sought || role)
  const invite = (
    <ButtonLink href={to('/invites', { dialog: 'invite' })} kind="primary" icon="user-plus" shortcut="n">
      {people.invite}
    </ButtonLink>
  )
  return (
    <Page title={people.title} about={people.about} actions={invite}>
      <section class="section">
        <Filters />
        <Resource
          of={list}
          lines={6}
          empty={
            isFiltered ? (
              <Empty
                icon="search"
                title={people.none_found}
                action={
                  <Button onClick={() => setQuery({ q: null, role: null })}>{words.clear_filters}</Button>
                }
              />
            ) : (
              <Empty icon="users" title={people.nobody} action={invite}>
                {people.nobody_about}
              </Empty>
            )
          }
        >
          {(rows) => (
            <DataTable
              label={people.title}
              rows={rows}
              keyOf={({ account }) => account.id}
              hasMore={list.hasMore}
              more={list.more}
              columns={[
                { head: people.name, cell: (one) => <Name entry={one} /> },
                { head: people.email, cell: ({ account }) => account.email && <Text>{account.email}</Text> },
                {
                  head: people.roles,
                  cell: (one) => {
                    const roles = rolesText(one.actors.flatMap((actor) => actor.role_grants))
                    return roles && <Text>{roles}</Text>
                  },
                },
                {
                  head: people.offers,
                  width: '72px',
                  label: people.offers,
                  cell: ({ pending_offers: { length } }) =>
                    length > 0 && <Badge kind="accent">{length}</Badge>,
                },
                {
                  head: people.since,
                  width: '128px',
                  label: people.since,
                  cell: ({ account }) => <Time at={account.created_at} />,
                },
              ]}
            />
          )}
        </Resource>
      </section>
    </Page>
  )
}

const Name = ({ entry: { account } }: { entry: Entry }) => (
  <RowLink href={to(`/people/${account.id}`)}>
    <Text>{account.username}</Text> {account.deleted_at && <Badge kind="warn">{people.deleted}</Badge>}
  </RowLink>
)

function Filters() {
  const { query } = place.value
  const [text, setText] = useTypedFilter('q')
  const roles = useCall('registry_list', {}).data?.roles ?? []
  return (
    <div class="bar">
      <Field
        label={`${people.search} ${people.search_hint}`}
        type="search"
        value={text}
        onInput={setText}
        maxlength={254}
      />
      <SelectField
        label={people.with_role}
        value={query.get('role') ?? ''}
        options={[
          { value: '', label: people.any_role },
          ...roles.map(({ name }) => ({ value: name, label: name })),
        ]}
        onChange={(role) => setQuery({ role })}
      />
      <Checkbox
        label={people.show_deleted}
        checked={query.get('deleted') !== null}
        onChange={(is) => setQuery({ deleted: is ? '1' : null })}
      />
    </div>
  )
}
