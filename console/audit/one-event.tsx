import { ActorName } from '../api/actor-name.tsx'
import { Sentence } from '../api/event-rows.tsx'
import { useCall } from '../api/query.ts'
import { audit } from '../copy/audit.ts'
import { to } from '../lib/router.ts'
import { fullTime } from '../lib/time.ts'
import { Facts } from '../ui/facts.tsx'
import { Id } from '../ui/id.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, Resource } from '../ui/resource.tsx'
import { Tree } from '../ui/tree.tsx'

/** One row of the log, with all that was recorded. */
export function OneEvent({ seq }: { seq: number }) {
  const found = useCall('audit_log_list', { since_seq: seq - 1, limit: 1 })
  return (
    <Page title={audit.one(seq)} back={{ href: to('/audit'), label: audit.title }}>
      <Resource
        of={found}
        isEmpty={({ events }) => events[0]?.seq !== seq}
        empty={<Empty icon="scroll-text" title={audit.none_match} />}
      >
        {({ events: [row] }) =>
          row && (
            <div class="stack">
              <p>
                <Sentence of={row} />
              </p>
              <Facts
                of={[
                  [audit.event, <code key="type">{row.event_type}</code>],
                  [audit.result, row.outcome === 'success' ? audit.success : audit.failure],
                  [audit.when, fullTime(row.created_at)],
                  row.ip !== null && [audit.address, row.ip],
                  row.actor_id !== null && ['actor_id', <Actor key="actor" id={row.actor_id} />],
                  row.account_id !== null && ['account_id', <Account key="account" id={row.account_id} />],
                  row.target_actor_id !== null && [
                    'target_actor_id',
                    <Actor key="target" id={row.target_actor_id} />,
                  ],
                  row.target_account_id !== null && [
                    'target_account_id',
                    <Account key="target-account" id={row.target_account_id} />,
                  ],
                ]}
              />
              {row.metadata && <Tree label={audit.details} of={row.metadata} />}
            </div>
          )
        }
      </Resource>
    </Page>
  )
}

const Actor = ({ id }: { id: string }) => (
  <span class="row">
    <ActorName id={id} /> <Id id={id} />
  </span>
)
const Account = ({ id }: { id: string }) => (
  <span class="row">
    <a href={to(`/people/${id}`)}>{audit.account}</a> <Id id={id} />
  </span>
)
