import { EventRows } from '../api/event-rows.tsx'
import { usePages } from '../api/query.ts'
import { server } from '../api/server.ts'
import { audit, sentences } from '../copy/audit.ts'
import { words } from '../copy/common.ts'
import { place, setQuery, to } from '../lib/router.ts'
import type { PageProps } from '../routes.ts'
import { Button } from '../ui/button.tsx'
import { SelectField } from '../ui/field.tsx'
import { shortId } from '../ui/id.tsx'
import { Tabs } from '../ui/link.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, Resource } from '../ui/resource.tsx'
import { OneEvent } from './one-event.tsx'
import { Tail } from './tail.tsx'
import './audit.css'

export default function AuditPage({ params: { part = '' } }: PageProps) {
  if (/^\d+$/.test(part)) return <OneEvent seq={Number(part)} />
  const tabs = [
    { href: to('/audit'), label: audit.log, isCurrent: part === '' },
    ...(server.features.audit_stream
      ? [{ href: to('/audit/live'), label: audit.live, isCurrent: part === 'live' }]
      : []),
  ]
  return (
    <Page title={audit.title} tabs={<Tabs label={audit.parts} tabs={tabs} />}>
      {part === 'live' ? <Tail /> : <Log />}
    </Page>
  )
}

const types = Object.keys(sentences).sort()

function Log() {
  const { query } = place.value
  const [event_type, outcome, account_id] = ['event', 'result', 'account'].map((key) => query.get(key))
  const list = usePages(
    'audit_log_list',
    {
      event_type: event_type ?? null,
      outcome: outcome === 'success' || outcome === 'failure' ? outcome : null,
      account_id: account_id ?? null,
    },
    ({ events }) => events,
  )
  const isFiltered = Boolean(event_type || outcome || account_id)
  const clear = (
    <Button onClick={() => setQuery({ event: null, result: null, account: null })}>
      {words.clear_filters}
    </Button>
  )
  return (
    <section class="section">
      <div class="bar">
        <SelectField
          label={audit.event}
          value={event_type ?? ''}
          options={[
            { value: '', label: audit.any_event },
            ...types.map((value) => ({ value, label: value })),
          ]}
          onChange={(event) => setQuery({ event })}
        />
        <SelectField
          label={audit.result}
          value={outcome ?? ''}
          options={[
            { value: '', label: audit.any_result },
            { value: 'success', label: audit.success },
            { value: 'failure', label: audit.failure },
          ]}
          onChange={(result) => setQuery({ result })}
        />
        {account_id && <span>{audit.only_account(shortId(account_id))}</span>}
        {isFiltered && clear}
      </div>
      <Resource
        of={list}
        lines={8}
        empty={<Empty icon="scroll-text" title={isFiltered ? audit.none_match : audit.none} />}
      >
        {(rows) => <EventRows rows={rows} hasMore={list.hasMore} more={list.more} />}
      </Resource>
    </section>
  )
}
