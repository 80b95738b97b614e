import { isHearing } from '../api/audit-feed.ts'
import { connection } from '../api/live.ts'
import { useCall, useRead } from '../api/query.ts'
import { server } from '../api/server.ts'
import { number } from '../copy/common.ts'
import { explain, explainRead } from '../copy/errors.ts'
import { status } from '../copy/status.ts'
import { zone } from '../lib/time.ts'
import { DataTable } from '../ui/data-table.tsx'
import { Facts } from '../ui/facts.tsx'
import { SelectField } from '../ui/field.tsx'
import { Badge, Note } from '../ui/note.tsx'
import { Page } from '../ui/page.tsx'
import { Resource } from '../ui/resource.tsx'
import { Time } from '../ui/time.tsx'
import { Words } from '../ui/words.tsx'

type Health = { isLive: boolean; reason: string | null; warnings: string[]; ahead_s: number }

/** Repeated every ten seconds while the page is visible. */
async function health({ signal }: { signal: AbortSignal }): Promise<Health> {
  const [live, ready] = await Promise.all(
    ['/health/live', '/health/ready'].map((path) => fetch(path, { signal }).catch(() => undefined)),
  )
  const answer = (await ready?.json().catch(() => ({}))) as
    | { error?: string; warnings?: string[] }
    | undefined
  const date = Date.parse(ready?.headers.get('date') ?? '')
  return {
    isLive: live?.ok === true,
    reason: ready?.ok ? null : (answer?.error ?? 'transport_failed'),
    warnings: answer?.warnings ?? [],
    ahead_s: Number.isNaN(date) ? 0 : Math.round((Date.now() - date) / 1000),
  }
}

export default function StatusPage() {
  const state = useRead([null, 'health'], health, { poll: 10_000 })
  return (
    <Page title={status.title}>
      <Resource of={state}>
        {({ isLive, reason, warnings, ahead_s }) => (
          <div class="stack">
            {reason && (
              <Note kind="bad">
                <Words>{explainRead({ reason, data: {}, status: 503 })}</Words>
              </Note>
            )}
            <Facts
              of={[
                [status.version, server.version],
                [
                  status.process,
                  <Badge key="live" kind={isLive ? 'ok' : 'bad'}>
                    {isLive ? status.answers : status.silent}
                  </Badge>,
                ],
                [
                  status.ready,
                  <Badge key="ready" kind={reason ? 'bad' : 'ok'}>
                    {reason ?? status.is_ready}
                  </Badge>,
                ],
                [status.socket, status.sockets[connection.value ?? 'off'] ?? connection.value],
                [status.stream, isHearing.value ? status.streams.open : status.streams.off],
                [status.clock, Math.abs(ahead_s) < 3 ? status.clock_same : status.clock_off(ahead_s)],
              ]}
            />
            {warnings.length > 0 && (
              <section class="section">
                <h2>{status.warnings}</h2>
                {warnings.map((one) => (
                  <Note key={one} kind="warn">
                    {one}
                  </Note>
                ))}
              </section>
            )}
          </div>
        )}
      </Resource>
      <Node />
      <div class="bar">
        <SelectField
          label={status.zone}
          value={zone.value === 'utc' ? 'utc' : ''}
          options={(['', 'utc'] as const).map((value) => ({ value, label: status.zones[value] }))}
          onChange={(chosen) => {
            zone.value = chosen
          }}
        />
      </div>
    </Page>
  )
}

/** What the answering node has done since it started. */
function Node() {
  const found = useCall('service_status', {}, { poll: 10_000 })
  return (
    <section class="section">
      <h2>{status.service}</h2>
      <Resource of={found}>
        {({
          node,
          started_at,
          requests,
          sockets,
          streams,
          max_connections,
          database,
          audit_rows_lost,
          refusals,
        }) => (
          <div class="stack">
            <Facts
              of={[
                [status.up, <Time key="up" at={started_at} />],
                [status.node, node],
                [status.requests, number(requests)],
                [status.connections, status.connections_of(sockets, streams, max_connections)],
                [status.database, status.database_of(database)],
                audit_rows_lost > 0 && [status.rows_lost, number(audit_rows_lost)],
              ]}
            />
            <Refusals of={refusals} />
          </div>
        )}
      </Resource>
    </section>
  )
}

function Refusals({ of }: { of: Record<string, number> }) {
  const rows = Object.entries(of).toSorted(([, a], [, b]) => b - a)
  if (rows.length === 0) return <p class="soft">{status.no_refusals}</p>
  return (
    <DataTable
      label={status.refusals}
      rows={rows}
      keyOf={([reason]) => reason}
      columns={[
        { head: status.reason, width: 'minmax(0, 240px)', cell: ([reason]) => <code>{reason}</code> },
        { head: status.times, width: '96px', label: status.times, cell: ([, times]) => number(times) },
        {
          head: status.meaning,
          cell: ([reason]) => (
            <span class="soft">
              <Words>{explain({ reason, data: {}, status: 0 })}</Words>
            </span>
          ),
        },
      ]}
    />
  )
}
