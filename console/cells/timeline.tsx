import { type Event, Sentence } from '../api/event-rows.tsx'
import { useCall } from '../api/query.ts'
import { cells } from '../copy/cells.ts'
import { Resource } from '../ui/resource.tsx'
import { Time } from '../ui/time.tsx'
import type { PartProps } from './cell-page.tsx'

/** The latest events of a cell. */
export function Timeline({ got: { cell } }: PartProps) {
  const state = useCall('cell_audit_list', { cell_id: cell.id })
  return (
    <Resource
      of={state}
      isEmpty={({ events }) => events.length === 0}
      empty={<p class="soft">{cells.no_timeline}</p>}
    >
      {({ events }) => (
        <>
          <ol class="list">
            {events.map((one) => (
              <li key={one.id}>
                <span class="grow">
                  <Sentence
                    of={{ ...(one as unknown as Event), metadata: { cell_id: cell.id } }}
                    here={cell.id}
                  />
                </span>
                <span class="soft">
                  <Time at={one.created_at} />
                </span>
              </li>
            ))}
          </ol>
          {events.length >= 50 && <p class="soft small">{cells.newest_events}</p>}
        </>
      )}
    </Resource>
  )
}
