import { ActorName } from '../api/actor-name.tsx'
import { EventRows } from '../api/event-rows.tsx'
import { OfferState } from '../api/offer-state.tsx'
import { usePages } from '../api/query.ts'
import { cellLabel } from '../copy/cells.ts'
import { people } from '../copy/people.ts'
import { to } from '../lib/router.ts'
import { DataTable } from '../ui/data-table.tsx'
import { RowLink } from '../ui/link.tsx'
import { Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { Time } from '../ui/time.tsx'
import type { PartProps } from './person-page.tsx'

export function PersonOffers({ person: { account } }: PartProps) {
  const list = usePages('role_grant_offer_history', { account_id: account.id }, ({ offers }) => offers)
  return (
    <Resource of={list} empty={<p class="soft">{people.no_offers}</p>}>
      {(rows) => (
        <DataTable
          label={people.tabs.offers}
          rows={rows}
          keyOf={({ offer_id }) => offer_id}
          hasMore={list.hasMore}
          more={list.more}
          columns={[
            { head: people.role, cell: ({ role }) => <strong>{role}</strong> },
            {
              head: people.from,
              label: people.from,
              cell: ({ from_actor_id }) => <ActorName id={from_actor_id} />,
            },
            { head: people.since, label: people.since, cell: ({ created_at }) => <Time at={created_at} /> },
            {
              head: people.state,
              cell: (one) => <OfferState offer={one} />,
            },
          ]}
        />
      )}
    </Resource>
  )
}

/** The cells of each actor; most people have one. */
export const PersonCells = ({ person: { actors } }: PartProps) => (
  <>
    {actors.map(({ id }) => (
      <CellsOf key={id} actor_id={id} />
    ))}
  </>
)

function CellsOf({ actor_id }: { actor_id: string }) {
  const list = usePages('cell_list', { created_by: actor_id }, ({ cells }) => cells)
  return (
    <Resource of={list} empty={<p class="soft">{people.no_cells}</p>}>
      {(rows) => (
        <DataTable
          label={people.tabs.cells}
          rows={rows}
          keyOf={({ id }) => id}
          hasMore={list.hasMore}
          more={list.more}
          columns={[
            {
              head: people.label,
              cell: (one) => (
                <RowLink href={to(`/cells/${one.id}`)}>
                  <Text>{cellLabel(one)}</Text>
                </RowLink>
              ),
            },
            { head: people.kind, cell: ({ kind }) => kind && <Text>{kind}</Text> },
            { head: people.changed, cell: (one) => <Time at={one.updated_at ?? one.created_at} /> },
          ]}
        />
      )}
    </Resource>
  )
}

export const PersonEvents = ({ person: { account } }: PartProps) => <EventsOf account_id={account.id} />

export function EventsOf({ account_id }: { account_id: string }) {
  const list = usePages('audit_log_list', { account_id }, ({ events }) => events)
  return (
    <Resource of={list} empty={<p class="soft">{people.no_events}</p>}>
      {(rows) => <EventRows rows={rows} hasMore={list.hasMore} more={list.more} />}
    </Resource>
  )
}
