import { useState } from 'preact/hooks'
import { ActorName } from '../api/actor-name.tsx'
import { ActorPicker } from '../api/actor-picker.tsx'
import { CellName } from '../api/cell-name.tsx'
import { CellPicker } from '../api/cell-picker.tsx'
import type { Input } from '../api/client.ts'
import { audit, sentences } from '../copy/audit.ts'
import { words } from '../copy/common.ts'
import { place, setQuery } from '../lib/router.ts'
import { isUuid } from '../lib/uuid.ts'
import { Button } from '../ui/button.tsx'
import { DateField } from '../ui/date-field.tsx'
import { SelectField } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'
import { shortId } from '../ui/id.tsx'

export type Filter = Pick<
  Input<'audit_log_list'>,
  'event_types' | 'outcome' | 'account_id' | 'actor_id' | 'cell_id' | 'from' | 'to'
>
const keys = ['event', 'result', 'account', 'actor', 'cell', 'from', 'to'] as const
const types = Object.keys(sentences).sort()
const [yearOne, yearTenThousand] = [new Date('0001-01-02'), new Date('9999-12-31')]

/** The filter in the address, without invalid values. */
export function filterOfPlace(): Filter {
  const { query } = place.value
  const filter: Record<string, unknown> = {}
  const events = query.get('event')?.split(',').filter(Boolean) ?? []
  if (events.length > 0) filter.event_types = events
  const outcome = query.get('result')
  if (outcome === 'success' || outcome === 'failure') filter.outcome = outcome
  for (const key of ['account', 'actor', 'cell'] as const) {
    const id = query.get(key)
    if (id && isUuid(id)) filter[`${key}_id`] = id
  }
  for (const key of ['from', 'to'] as const) {
    const at = new Date(query.get(key) ?? Number.NaN)
    // The fields have no room for other years.
    if (at >= yearOne && at < yearTenThousand) filter[key] = at.toISOString()
  }
  return filter
}

export const ClearFilters = () => (
  <Button onClick={() => setQuery(Object.fromEntries(keys.map((key) => [key, null])))}>
    {words.clear_filters}
  </Button>
)

/** All filters of the log; on a phone they are folded. */
export function Filters({ filter }: { filter: Filter }) {
  const { event_types: events, outcome, account_id, actor_id, cell_id, from, to } = filter
  const [isWide] = useState(() => matchMedia('(width >= 640px)').matches)
  const count = Object.keys(filter).length
  const setEvents = (next: readonly string[]): void => setQuery({ event: next.join(',') || null })
  return (
    <details class="filters" open={isWide || undefined}>
      <summary>
        <Icon name="filter" />
        {audit.filters}
        {count > 0 && <span class="badge">{count}</span>}
      </summary>
      <div class="bar">
        <SelectField
          label={audit.event}
          value={'' as string}
          options={[
            { value: '', label: events ? audit.another_event : audit.any_event },
            ...types.filter((one) => !events?.includes(one)).map((value) => ({ value, label: value })),
          ]}
          onChange={(type) => type && setEvents([...(events ?? []), type])}
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
        <ActorPicker
          key={actor_id}
          label={audit.who}
          value=""
          onChange={(actor) => actor && setQuery({ actor })}
        />
        <CellPicker
          key={cell_id}
          label={audit.cell}
          value=""
          onChange={(cell) => cell && setQuery({ cell })}
        />
        <DateField label={audit.from} value={from ?? null} onChange={(from) => setQuery({ from })} />
        <DateField label={audit.to} value={to ?? null} onChange={(to) => setQuery({ to })} />
      </div>
      {count > 0 && (
        <div class="row">
          {events?.map((type) => (
            <Chip key={type} label={type} onRemove={() => setEvents(events.filter((one) => one !== type))}>
              {type}
            </Chip>
          ))}
          {actor_id && (
            <Chip label={audit.who} onRemove={() => setQuery({ actor: null })}>
              <ActorName id={actor_id} />
            </Chip>
          )}
          {account_id && (
            <Chip label={audit.account} onRemove={() => setQuery({ account: null })}>
              {audit.of_account(shortId(account_id))}
            </Chip>
          )}
          {cell_id && (
            <Chip label={audit.cell} onRemove={() => setQuery({ cell: null })}>
              <CellName id={cell_id} />
            </Chip>
          )}
          <ClearFilters />
        </div>
      )}
    </details>
  )
}

const Chip = ({
  label,
  children,
  onRemove,
}: {
  label: string
  children: preact.ComponentChildren
  onRemove(): void
}) => (
  <button type="button" class="filter-chip" onClick={onRemove}>
    <span>{children}</span>
    <Icon name="x" />
    <span class="hidden-text">{words.remove(label)}</span>
  </button>
)
