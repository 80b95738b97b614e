import { z } from 'zod'
import { numberForReading, seqEnd } from '../audit/numbering.ts'
import { query } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { issue } from '../wire/issues.ts'
import { Int, Timestamp } from '../wire/types.ts'
import { filterInput, filterOf, refuseEmpty, within } from './filter.ts'
import { numbersOf, selection } from './selection.ts'

const bucketsMax = 200
const bucketSecondsMax = 31_622_400

/** Rows counted per bucket: fewer if there are more buckets. There are few sizes, so that there are few statements. */
const sizeOf = (buckets: number): number =>
  [8000, 4000, 2000, 1000][Math.max(0, Math.ceil(Math.log2(buckets / 25)))] as number

const Bucket = z.object({
  from: z.string(),
  success: z.int(),
  failure: z.int(),
  /** The bucket has more rows than were counted: the newest 1000, or up to 8000 if there are fewer buckets. */
  is_cut: z.boolean(),
})

export const audit_log_activity = query({
  doc: 'The number of audit rows in each interval of `bucket_s` seconds. Only the newest 1000 to 8000 rows of each interval are counted.',
  auth: { role: 'admin' },
  rate_limit: 'account',
  rate_limit_group: 'admin_read',
  input: z.strictObject({
    from: Timestamp,
    to: Timestamp,
    bucket_s: Int(1, bucketSecondsMax),
    ...filterInput,
  }),
  output: z.object({ buckets: z.array(Bucket) }),
  refine({ from, to, bucket_s, ...input }) {
    refuseEmpty({ from, to })
    const buckets = Math.ceil((Date.parse(to) - Date.parse(from)) / 1000 / bucket_s)
    if (buckets > bucketsMax)
      throw refusal('invalid_params', {
        issues: [
          issue(
            ['bucket_s'],
            'too_small',
            `At most ${bucketsMax} buckets between \`from\` and \`to\` are counted.`,
          ),
        ],
      })
    return { from, to, bucket_s, buckets, filter: filterOf(input) }
  },
  async handler({ from, to, bucket_s, buckets, filter }, { app, db }) {
    await numberForReading(app.db)
    const { stretch } = await within(db, { from, to }, { direction: 'desc', from: 0, to: seqEnd })
    const selected = await selection(db, filter, stretch)
    const size = sizeOf(buckets)
    const numbers = numbersOf(
      selected,
      { direction: 'desc', from: sql`bucket.above`, to: sql`bucket.below` },
      size,
    )
    // The numbers of rows with nearly the same time may be in a different order.
    const near = 100
    const rows = await db.rows<z.output<typeof Bucket>>(sql`
      with edge as materialized (
        select nth, at, max(coalesce(last, 0)) over (order by nth) as last
        from generate_series(0, ${buckets}::int) nth
          cross join lateral (
            select least(${from}::timestamptz + nth * ${bucket_s} * interval '1 s', ${to}::timestamptz) as at
          ) moment
          cross join lateral (
            select max(seq) as last from (
              select seq from audit_log where created_at < at
              order by created_at desc limit ${sql.raw(near)}
            ) near
          ) before
      ), bucket as (
        select nth, at, last as above, lead(last) over (order by nth) + 1 as below from edge
      )
      select at as "from", count(*) filter (where outcome = 'success')::int as success,
        count(*) filter (where outcome = 'failure')::int as failure, count(outcome) = ${size}::int as is_cut
      from (
        select nth, at, (select outcome from audit_log l where l.seq = found.seq) as outcome
        from bucket left join lateral (${numbers}) found on true
        where nth < ${buckets}::int offset 0
      ) counted
      group by nth, at order by nth`)
    return { buckets: rows }
  },
})
