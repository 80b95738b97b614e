import { EventRows } from '../api/event-rows.tsx'
import { usePages } from '../api/query.ts'
import { server } from '../api/server.ts'
import { audit, sentences } from '../copy/audit.ts'
import { words } from '../copy/common.ts'
import { to as hrefOf, place, setQuery } from '../lib/router.ts'
import { shortTime } from '../lib/time.ts'
import type { PageProps } from '../routes.ts'
import { Button } from '../ui/button.tsx'
import { SelectField } from '../ui/field.tsx'
import { shortId } from '../ui/id.tsx'
import { Tabs } from '../ui/link.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, Resource } from '../ui/resource.tsx'
import { Activity } from './activity.tsx'
import { OneEvent } from './one-event.tsx'
import { Tail } from './tail.tsx'
import './audit.css'

export default function AuditPage({ params: { part = '' } }: PageProps) {
  if (/^\d+$/.test(part)) return <OneEvent seq={Number(part)} />
  const tabs = [
    { href: hrefOf('/audit'), label: audit.log, isCurrent: part === '' },
    ...(server.features.audit_stream
      ? [{ href: hrefOf('/audit/live'), label: audit.live, isCurrent: part === 'live' }]
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
  const [event, result, account_id, from, to] = ['event', 'result', 'account', 'from', 'to'].map((key) =>
    query.get(key),
  )
  const outcome = (['success', 'failure'] as const).find((one) => one === result) ?? null
  const filter = { outcome, account_id: account_id ?? null }
  const list = usePages(
    'audit_log_list',
    { ...filter, ...(event && { event_types: [event] }), from: from ?? null, to: to ?? null },
    ({ events }) => events,
  )
  const isFiltered = Boolean(event || outcome || account_id || from)
  const clear = (
    <Button onClick={() => setQuery({ event: null, result: null, account: null, from: null, to: null })}>
      {words.clear_filters}
    </Button>
  )
  return (
    <section class="section">
      <div class="bar">
        <SelectField
          label={audit.event}
          value={event ?? ''}
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
        {from && to && <span>{audit.period(shortTime(from), shortTime(to))}</span>}
        {isFiltered && clear}
      </div>
      <Activity filter={filter} event_type={event ?? null} />
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
