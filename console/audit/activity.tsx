import { useState } from 'preact/hooks'
import { useCall } from '../api/query.ts'
import { audit } from '../copy/audit.ts'
import { setQuery } from '../lib/router.ts'
import { shortTime } from '../lib/time.ts'

type Filter = { outcome?: 'success' | 'failure' | null; account_id?: string | null }
const hour = 3_600_000
const bars = 48

/** How much happened in the last day, half an hour a bar; a bar leads to its events. */
export function Activity({ filter, event_type }: { filter: Filter; event_type: string | null }) {
  // Whole half hours, so that the question stays the same for a while.
  const [to] = useState(() => Math.ceil(Date.now() / (hour / 2)) * (hour / 2))
  const { data } = useCall('audit_log_activity', {
    from: new Date(to - 24 * hour).toISOString(),
    to: new Date(to).toISOString(),
    bucket_s: 1800,
    ...filter,
    ...(event_type && { event_types: [event_type] }),
  })
  const buckets = data?.buckets ?? []
  const highest = Math.max(1, ...buckets.map(({ success, failure }) => success + failure))
  return (
    <fieldset class="activity">
      <legend class="hidden-text">{audit.activity}</legend>
      {buckets.map(({ from, success, failure }) => (
        <button
          key={from}
          type="button"
          class="activity-bar"
          disabled={success + failure === 0}
          aria-label={audit.bar(shortTime(from), success, failure)}
          title={audit.bar(shortTime(from), success, failure)}
          onClick={() => setQuery({ from, to: new Date(Date.parse(from) + hour / 2).toISOString() })}
        >
          <i class="is-failure" style={{ height: `${(failure / highest) * 100}%` }} />
          <i style={{ height: `${(success / highest) * 100}%` }} />
        </button>
      ))}
      {buckets.length === 0 &&
        Array.from({ length: bars }, (_, index) => <span key={index} class="activity-bar" />)}
    </fieldset>
  )
}
