import { ActorName } from '../api/actor-name.tsx'
import { Sentence } from '../api/event-rows.tsx'
import { useCall } from '../api/query.ts'
import { audit } from '../copy/audit.ts'
import { to } from '../lib/router.ts'
import { fullTime } from '../lib/time.ts'
import { Facts } from '../ui/facts.tsx'
import { Icon, type IconName } from '../ui/icon.tsx'
import { Id } from '../ui/id.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, Resource } from '../ui/resource.tsx'
import { Tree } from '../ui/tree.tsx'

/** How far from a row its neighbours are looked for, because numbers can be missing. */
const reach = 10

/** One row of the log, with everything that was recorded, and links to the rows before and after it. */
export function OneEvent({ seq }: { seq: number }) {
  const found = useCall('audit_log_list', { since_seq: Math.max(0, seq - 1 - reach), limit: 2 * reach + 1 })
  const events = found.data?.events ?? []
  const at = events.findIndex((one) => one.seq === seq)
  return (
    <Page
      title={audit.one(seq)}
      back={{ href: to('/audit'), label: audit.title }}
      actions={
        at !== -1 && (
          <>
            <Neighbour of={events[at - 1]} icon="chevron-left" label={audit.earlier} />
            <Neighbour of={events[at + 1]} icon="chevron-right" label={audit.later} />
          </>
        )
      }
    >
      <Resource
        of={found}
        isEmpty={() => at === -1}
        empty={<Empty icon="scroll-text" title={audit.none_match} />}
      >
        {({ events: { [at]: row } }) =>
          row && (
            <div class="stack">
              <p>
                <Sentence of={row} />
              </p>
              <Facts
                of={[
                  [
                    audit.event,
                    <a key="type" href={to('/audit', { event: row.event_type })}>
                      <code>{row.event_type}</code>
                    </a>,
                  ],
                  [audit.result, row.outcome === 'success' ? audit.success : audit.failure],
                  [audit.when, fullTime(row.created_at)],
                  row.ip !== null && [audit.address, row.ip],
                  row.actor_id !== null && [audit.actor, <Actor key="actor" id={row.actor_id} />],
                  row.account_id !== null && [audit.account, <Account key="account" id={row.account_id} />],
                  row.target_actor_id !== null && [
                    audit.target_actor,
                    <Actor key="target" id={row.target_actor_id} />,
                  ],
                  row.target_account_id !== null && [
                    audit.target_account,
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

const Neighbour = ({ of, icon, label }: { of: { seq: number } | undefined; icon: IconName; label: string }) =>
  of && (
    <a class="button is-quiet is-icon" href={to(`/audit/${of.seq}`)} aria-label={label} title={label}>
      <Icon name={icon} />
    </a>
  )

const Actor = ({ id }: { id: string }) => (
  <span class="row">
    <ActorName id={id} /> <Id id={id} />
  </span>
)
const Account = ({ id }: { id: string }) => (
  <span class="row">
    <a href={to(`/people/${id}`)}>{audit.open_person}</a> <Id id={id} />
  </span>
)
