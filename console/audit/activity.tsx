import { useState } from 'preact/hooks'
import type { Output } from '../api/client.ts'
import { useCall } from '../api/query.ts'
import { audit } from '../copy/audit.ts'
import { setQuery } from '../lib/router.ts'
import { shortTime } from '../lib/time.ts'
import { Button } from '../ui/button.tsx'
import type { Filter } from './filter.tsx'
import { barsMax, periodOf } from './period.ts'

const phone = matchMedia('(width < 640px)')
type Bucket = Output<'audit_log_activity'>['buckets'][number]

/** How many events the period, or the last day, has; a bar leads to its events. */
export function Activity({ filter: { from, to, ...filter }, now }: { filter: Filter; now: number }) {
  const [isTable, showTable] = useState(false)
  const period = periodOf(from, to, now, phone.matches ? barsMax.phone : barsMax.other)
  const { data } = useCall('audit_log_activity', {
    from: new Date(period.from).toISOString(),
    to: new Date(period.to).toISOString(),
    bucket_s: period.bucket_s,
    ...filter,
  })
  const buckets = data?.buckets ?? []
  const open = ({ from }: Bucket): void => {
    const end = Math.min(Date.parse(from) + period.bucket_s * 1000, period.to)
    setQuery({ from, to: new Date(end).toISOString() })
  }
  return (
    <section class="activity" aria-label={audit.activity}>
      <header class="row">
        <h2 class="small soft">
          {audit.activity}: {shortTime(new Date(period.from).toISOString())} –{' '}
          {shortTime(new Date(period.to).toISOString())}
        </h2>
        <span class="push">
          <Button small kind="quiet" onClick={() => showTable(!isTable)} pressed={isTable}>
            {audit.as_table}
          </Button>
        </span>
      </header>
      {isTable ? (
        <Table buckets={buckets} onOpen={open} />
      ) : (
        <Bars buckets={buckets} count={period.count} onOpen={open} />
      )}
    </section>
  )
}

type Props = { buckets: readonly Bucket[]; onOpen(bucket: Bucket): void }
const textOf = ({ from, success, failure, is_cut }: Bucket): string =>
  audit.bar(shortTime(from), success, failure, is_cut)

function Bars({ buckets, count, onOpen }: Props & { count: number }) {
  const highest = Math.max(1, ...buckets.map(({ success, failure }) => success + failure))
  return (
    <div class="activity-bars">
      {buckets.map((one) => (
        <button
          key={one.from}
          type="button"
          class="activity-bar"
          disabled={one.success + one.failure === 0}
          aria-label={textOf(one)}
          title={textOf(one)}
          onClick={() => onOpen(one)}
        >
          <i class="is-failure" style={{ height: `${(one.failure / highest) * 100}%` }} />
          <i style={{ height: `${(one.success / highest) * 100}%` }} />
        </button>
      ))}
      {buckets.length === 0 &&
        Array.from({ length: count }, (_, index) => <span key={index} class="activity-bar" />)}
    </div>
  )
}

/** The same as numbers, without the stretches that have no events. */
const Table = ({ buckets, onOpen }: Props) => (
  <div class="activity-table">
    <table>
      <thead>
        <tr>
          <th scope="col">{audit.from}</th>
          <th scope="col">{audit.success}</th>
          <th scope="col">{audit.failure}</th>
        </tr>
      </thead>
      <tbody>
        {buckets
          .filter(({ success, failure }) => success + failure > 0)
          .map((one) => (
            <tr key={one.from}>
              <th scope="row">
                <button type="button" class="link" onClick={() => onOpen(one)}>
                  {shortTime(one.from)}
                </button>
              </th>
              <td>{one.success}</td>
              <td>
                {one.failure} {one.is_cut && audit.or_more}
              </td>
            </tr>
          ))}
      </tbody>
    </table>
  </div>
)
