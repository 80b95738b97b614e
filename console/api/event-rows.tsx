import type { ComponentChildren } from 'preact'
import { audit, failures, sentences } from '../copy/audit.ts'
import { to } from '../lib/router.ts'
import { DataTable } from '../ui/data-table.tsx'
import { Icon } from '../ui/icon.tsx'
import { shortId } from '../ui/id.tsx'
import { RowLink } from '../ui/link.tsx'
import { Text } from '../ui/text.tsx'
import { Moment } from '../ui/time.tsx'
import { ActorName } from './actor-name.tsx'
import { CellLink } from './cell-name.tsx'
import type { Output } from './client.ts'
import './event-rows.css'

type Listed = Output<'audit_log_list'>['events'][number]
/** The keys that both the list and the stream have. */
export type Event = Pick<
  Listed,
  | 'id'
  | 'seq'
  | 'event_type'
  | 'outcome'
  | 'actor_id'
  | 'account_id'
  | 'target_actor_id'
  | 'target_account_id'
  | 'ip'
  | 'created_at'
  | 'metadata'
> &
  Partial<Listed>

/** Rows of the audit log, one sentence each; a row opens its record. */
export const EventRows = ({
  rows,
  hasMore = false,
  more,
}: {
  rows: readonly Event[]
  hasMore?: boolean
  more?: () => void
}) => (
  <DataTable
    label={audit.title}
    rows={rows}
    keyOf={({ id }) => id}
    hasMore={hasMore}
    {...(more && { more })}
    columns={[
      {
        head: audit.when,
        width: '148px',
        cell: (row) => (
          <RowLink href={to(`/audit/${row.seq}`)}>
            <Moment at={row.created_at} />
          </RowLink>
        ),
      },
      { head: audit.what, cell: (row) => <Sentence of={row} /> },
      { head: audit.address, width: '132px', cell: ({ ip }) => ip },
    ]}
  />
)

/** What happened, with names; a consumer's own event has only its type. `here`: the cell whose page it is on. */
export function Sentence({ of: row, here }: { of: Event; here?: string }) {
  const type = row.event_type as keyof typeof sentences
  const isKnown = Object.hasOwn(sentences, type)
  const isRefused = row.outcome === 'failure'
  const failure = isRefused && isKnown ? failures[type] : undefined
  const pattern = failure ?? (isKnown ? sentences[type] : `{who} ${row.event_type}`)
  const parts = pattern.split(/[{}]/).map((part, index) => (index % 2 ? filled(part, row, here) : part))
  if (!isRefused) return <span>{parts}</span>
  const reason = row.metadata?.reason
  return (
    <span class="event-refused">
      <Icon name="triangle-alert" /> {!failure && <strong>{audit.refused}</strong>} {parts}
      {typeof reason === 'string' && <span class="soft">{` (${reason})`}</span>}
    </span>
  )
}

type Metadata = { role?: string; scope_kind?: string; scope_id?: string | null; via?: string }

function filled(name: string, row: Event, here?: string): ComponentChildren {
  const metadata = (row.metadata ?? {}) as Metadata & Record<string, unknown>
  if (name === 'who') return whoOf(row.actor_id, row.account_id, row.username, metadata.via)
  // The row of a purge keeps the name that nothing else knows any more.
  if (name === 'target' && row.event_type === 'account_purge' && typeof metadata.username === 'string')
    return <Text>{metadata.username}</Text>
  if (name === 'target')
    return row.target_actor_id || row.target_account_id
      ? whoOf(row.target_actor_id, row.target_account_id, row.target_username)
      : whoOf(row.actor_id, row.account_id, row.username)
  if (name === 'role') return <strong>{metadata.role}</strong>
  if (name === 'where')
    return metadata.scope_id ? `(${metadata.scope_kind} ${shortId(metadata.scope_id)})` : ''
  const cell = metadata.cell_id ?? metadata.source_id ?? metadata.parent_id
  if (cell === here && here) return audit.this_cell
  return typeof cell === 'string' ? <CellLink id={cell} /> : audit.a_cell
}

function whoOf(
  actor_id: string | null,
  account_id: string | null,
  username?: string | null,
  via?: string,
): ComponentChildren {
  if (username) return <Text>{username}</Text>
  if (actor_id) return <ActorName id={actor_id} />
  if (account_id)
    return (
      <a class="over" href={to(`/people/${account_id}`)}>
        {shortId(account_id)}
      </a>
    )
  return via ? audit.operator : <span class="soft">{audit.somebody}</span>
}
