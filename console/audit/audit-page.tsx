import { useState } from 'preact/hooks'
import { EventRows } from '../api/event-rows.tsx'
import { startAgain, useCall, usePages } from '../api/query.ts'
import { server } from '../api/server.ts'
import { audit } from '../copy/audit.ts'
import { to as hrefOf, place, setQuery } from '../lib/router.ts'
import { serverNow } from '../lib/time.ts'
import type { PageProps } from '../routes.ts'
import { Button } from '../ui/button.tsx'
import { Tabs, titleOf } from '../ui/link.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, Resource } from '../ui/resource.tsx'
import { Activity } from './activity.tsx'
import { Export } from './export.tsx'
import { ClearFilters, type Filter, Filters, filterOfPlace } from './filter.tsx'
import { OneEvent } from './one-event.tsx'
import { Tail } from './tail.tsx'
import './audit.css'

export default function AuditPage({ params: { part = '' } }: PageProps) {
  if (/^\d+$/.test(part)) return <OneEvent seq={Number(part)} />
  const isLive = part === 'live' && server.features.audit_stream
  const tabs = [
    { href: hrefOf('/audit'), label: audit.log, isCurrent: part === '' },
    ...(server.features.audit_stream
      ? [{ href: hrefOf('/audit/live'), label: audit.live, isCurrent: isLive }]
      : []),
  ]
  return (
    <Page
      title={titleOf(audit.title, tabs)}
      heading={audit.title}
      tabs={<Tabs label={audit.parts} tabs={tabs} />}
      actions={
        !isLive && (
          <Button icon="download" onClick={() => setQuery({ dialog: 'export' })}>
            {audit.export}
          </Button>
        )
      }
    >
      {isLive ? <Tail /> : <Log />}
    </Page>
  )
}

const newerMax = 100

function Log() {
  const filter = filterOfPlace()
  const [now, setNow] = useState(serverNow)
  const list = usePages('audit_log_list', filter, ({ events }) => events)
  const isFiltered = Object.keys(filter).length > 0
  return (
    <section class="section">
      <Filters filter={filter} />
      <Activity filter={filter} now={now} />
      {list.data && !filter.to && (
        <Newer filter={filter} after={list.data[0]?.seq ?? 0} onShow={() => setNow(serverNow())} />
      )}
      <Resource
        of={list}
        lines={8}
        empty={
          <Empty
            icon="scroll-text"
            title={isFiltered ? audit.none_match : audit.none}
            action={isFiltered && <ClearFilters />}
          />
        }
      >
        {(rows) => <EventRows rows={rows} hasMore={list.hasMore} more={list.more} />}
      </Resource>
      {place.value.query.get('dialog') === 'export' && (
        <Export filter={filter} onClose={() => setQuery({ dialog: null })} />
      )}
    </section>
  )
}

/** Shown beside the list, so that no row moves while somebody reads. */
function Newer({ filter, after, onShow }: { filter: Filter; after: number; onShow(): void }) {
  const { data } = useCall(
    'audit_log_list',
    { ...filter, since_seq: after, limit: newerMax },
    { poll: 5_000 },
  )
  const count = data?.events.length ?? 0
  const show = (): void => {
    startAgain('audit_log_list', 'audit_log_activity')
    onShow()
    scrollTo(0, 0)
  }
  return (
    <div class="newer" role="status">
      {count > 0 && (
        <Button small kind="primary" icon="refresh-cw" onClick={show}>
          {audit.newer(count, newerMax)}
        </Button>
      )}
    </div>
  )
}
